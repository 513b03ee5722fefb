"""What a verb says besides its result, on stderr."""

import sys

from vitrail.base.printable import printable


def say(sentence: str) -> None:
    """Tell a person something, at once."""
    print(f"vitrail: {printable(sentence)}", file=sys.stderr, flush=True)
