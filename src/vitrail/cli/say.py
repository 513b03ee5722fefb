"""What a verb says besides its result, on stderr."""

import sys
from contextlib import suppress

from vitrail.base.printable import printable
from vitrail.cli.names import in_flags


def say(sentence: str) -> None:
    """Tell the user something, at once; settings become flags."""
    line(f"vitrail: {printable(in_flags(sentence))}")


def line(text: str) -> None:
    """Write a line to stderr; work goes on without words when nobody reads them any more."""
    with suppress(OSError, ValueError, AttributeError):  # a pipe that is closed, a stream that is closed, none at all
        print(text, file=sys.stderr, flush=True)
