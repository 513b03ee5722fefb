"""Read a verb's flags, and say in one sentence what is wrong with them."""

import contextlib
import io
import re
from types import ModuleType
from typing import Any

import tyro

from vitrail.base.errors import VitrailError


class UsageError(VitrailError):
    """Flags that the verb does not understand."""


def parse(verb: str, module: ModuleType, words: list[str]) -> Any:
    """Return the verb's `Arguments`; tyro draws help as it likes, but a complaint becomes a sentence."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(module.Arguments, prog=f"vitrail {verb}", description=module.__doc__, args=words)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UsageError(f"{_sentence(complaint.getvalue())} `vitrail {verb} --help` lists what it takes.") from None


def _sentence(complaint: str) -> str:
    """Take tyro's complaint out of its box and leave out what speaks of Python types."""
    lines = [line.strip("│|╭╮╰╯─ ") for line in complaint.splitlines()[1:]]
    text = " ".join(line for line in lines if line.strip("+-"))  # a terminal without lines draws boxes of these
    value = re.match(r"Error parsing (?P<flag>\S+): .*?(?: from \[|: )'(?P<given>.*?)'", text)
    if value:
        flag = value["flag"].partition("|")[0]
        wanted = re.search(rf"helptext: {re.escape(flag)} (?P<wanted>\S+)", text)
        needed = f", but takes {wanted['wanted']}" if wanted else ", which it cannot read"
        return f"{flag} is given {value['given']!r}{needed}."
    missing = re.match(r"(?:Missing from .*?|The following arguments are required): ?(?P<name>[A-Z]+|\S+)", text)
    if missing:
        return f"{missing['name']} is missing."
    choice = re.match(
        r"invalid choice '(?P<given>.*?)' for argument '(?P<flag>.*?)'\. Expected one of \((?P<known>.*?)\)", text
    )
    if choice:
        known = sorted(set(re.findall(r"'(.*?)'", choice["known"])) - {"None"})
        return f"{choice['flag']} is given {choice['given']!r}, but takes one of {', '.join(known)}."
    text = re.split(r" (?:Perhaps you meant|For full helptext|Argument helptext|Similar arguments)", text)[0].strip()
    return text if text.endswith(".") else f"{text}."
