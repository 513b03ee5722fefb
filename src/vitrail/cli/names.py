"""Settings by the names that they have on the command line.

Below the command line, sentences name settings as Python does; here they become flags:

    `image_size`       --image-size
    `to='vitrail'`     --to vitrail
    `schedule.peak`    --learning-rate, by its path in config.json
    `data`             DATA, for a positional
    `to_dict()`        --json

For the flags of a known verb, settings outside backquotes too: lossy=True, val_fraction is 2. A word without an
underscore is also an English word, so that it counts only before `=`, or as the first word of the sentence before "is"
and a value.
"""

import re
from dataclasses import fields
from functools import partial
from typing import Any, get_type_hints

OTHERWISE = {
    "data": "DATA",
    "start": "--from",
    "settings": "--set",
    "compiled": "--compile",
    "resamples": "--bootstrap",
}
"""Settings whose flags have names of their own."""
_NAME = re.compile(r"`(?P<name>[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?:=(?P<value>[^`]*))?`")
_CALL = re.compile(r"\b[a-z]\w*(?:\.\w+)*\((?:[^()`]|\([^()]*\))+\)")
"""A call of Python with arguments, which may hold another one."""
_PATH = r"\w/.'\"-"
"""What a word of a path, or of a quoted value, has beside it; a setting has none of it."""
_IS = r"(?= is (?:[-\d'\"(]|nan|inf|None|True|False))"
_VALUE = r"'(?P<quoted>[^']*)'|(?P<bare>[\w.%]*[\w%])"


def flag_of(name: str) -> str:
    """Return the flag of a setting, or of its path in config.json; a path without a flag stays as it is."""
    if "." in name:
        from vitrail.runs.changes import EXECUTION, PATHS  # imports torch, and paths are rare

        keywords = [keyword for keyword, path in (PATHS | EXECUTION).items() if path == name]
        return flag_of(keywords[0]) if keywords else name
    return OTHERWISE.get(name) or f"--{name.replace('_', '-')}"


def flags_of(arguments: type[Any]) -> dict[str, str]:
    """Return what is typed for each field of a verb's `Arguments`: a flag, or a place such as DATA."""
    hints = get_type_hints(arguments, include_extras=True)
    flags = {"to_dict()": "--json"}
    for field in fields(arguments):
        notes = getattr(hints[field.name], "__metadata__", ())
        name = next((note.name for note in notes if isinstance(getattr(note, "name", None), str)), field.name)
        placed = any(str(note).lower() == "positional" for note in notes)
        flags[field.name] = field.name.upper() if placed else f"--{name.replace('_', '-')}"
    return flags | {name: flag for name, flag in OTHERWISE.items() if flag in flags.values()}


def in_flags(sentence: str, arguments: type[Any] | None = None) -> str:
    """Write flags in place of settings: those in backquotes, and all that a verb's `Arguments` have.

    A call of Python, such as how another library builds a model, stays as it is.
    """
    calls = iter(_CALL.findall(sentence))
    sentence = _CALL.sub("\0", sentence)
    for name, flag in (flags_of(arguments) if arguments else {}).items():
        word = re.escape(name)
        sentence = sentence.replace(f"`{name}`", flag)
        if not flag.startswith("--"):
            continue
        assignment = rf"(?<![{_PATH}])(?P<tick>`?){word}=(?:{_VALUE})(?P=tick)(?!\w)"
        sentence = re.sub(assignment, partial(_assigned, flag), sentence)
        if "_" in name and name.isidentifier():
            sentence = re.sub(rf"(?<![{_PATH}]){word}(?![\w/=('\"-]|\.\w)", flag, sentence)
        elif name.isidentifier():
            sentence = re.sub(rf"\A{word}{_IS}", flag, sentence)
    return re.sub("\0", lambda _: next(calls, ""), _NAME.sub(_named, sentence))


def _assigned(flag: str, part: re.Match[str]) -> str:
    """Write an assignment; a switch that is on has no value, and one that is off no flag."""
    value = part["bare"] if part["quoted"] is None else part["quoted"]
    if part["quoted"] is None and value in ("False", "None"):
        return part[0]
    return flag if part["quoted"] is None and value == "True" else f"{flag} {value}"


def _named(part: re.Match[str]) -> str:
    value = part["value"]
    return flag_of(part["name"]) + (f" {value}" if value not in (None, "True") else "")
