"""What a verb says besides its result, on stderr."""

import sys
from contextlib import suppress

from vitrail.base.printable import printable


def say(sentence: str) -> None:
    """Tell a person something, at once."""
    line(f"vitrail: {printable(sentence)}")


def line(text: str) -> None:
    """Write a line to stderr; work goes on without words when nobody reads them any more."""
    with suppress(OSError, ValueError, AttributeError):  # a pipe that is closed, a stream that is closed, none at all
        print(text, file=sys.stderr, flush=True)
