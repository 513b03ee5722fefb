"""The output of a verb: its result on stdout, everything else on stderr; the only file that does.

Whatever is printed passes through `printable`, since names of files and classes may contain control sequences.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from vitrail.base.printable import line, printable
from vitrail.cli.names import in_flags

_OURS = str(Path(__file__).parents[1])


def show(text: str = "", *, flush: bool = False) -> None:
    """Write lines to stdout; tabs stay between their cells."""
    lines = ("\t".join(map(printable, row.split("\t"))) for row in text.split("\n"))
    print("\n".join(lines), flush=flush)  # noqa: T201


def say(sentence: str) -> None:
    """Print a note for the user, at once; settings become flags."""
    line(f"vitrail: {in_flags(sentence)}")


def fail(sentence: str) -> None:
    """Print why a command ends; a sentence may have a list below it."""
    first, *rest = f"vitrail: {in_flags(sentence)}".split("\n")
    for text in (first, *rest):
        line(text)


@contextmanager
def spoken_logs() -> Iterator[None]:
    """Say what the library logs, and what it warns of; warnings of other libraries are not for the user."""
    handler, logger = _Spoken(), logging.getLogger("vitrail")
    logger.addHandler(handler)
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        finally:
            logger.removeHandler(handler)


class _Spoken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Say one message."""
        say(record.getMessage())


def _say_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001
    filename: str,
    lineno: int,  # noqa: ARG001
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    if filename.startswith(_OURS):
        say(str(message))
