"""Text that is safe on a terminal: names of files and classes may have control characters."""

import re
import sys
from contextlib import suppress

_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, end a line or turn the direction of writing, and lone surrogates."""
_LONG = re.compile(r"[0-9]{41,}|\S{1025,}")
"""Numbers and words that are too long to read; nearly all paths are shorter."""
_END = 20
LONGEST = 100_000
"""Letters of a sentence: as many as the differences of a large model take."""


def printable(text: str) -> str:
    """Escape control characters: the end of a line becomes backslash and n."""
    return _ORDERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def shortened(sentence: str) -> str:
    """Leave out the middle of very long numbers, words and sentences."""
    text = _LONG.sub(lambda match: _ends(match[0], _END), sentence)
    return text if len(text) <= LONGEST else _ends(text, LONGEST // 2)


def _ends(text: str, letters: int) -> str:
    return f"{text[:letters]}...({len(text) - 2 * letters:,} more)...{text[-letters:]}"


def line(text: str) -> None:
    """Write one line to stderr; a closed stream does not stop the work."""
    with suppress(OSError, ValueError, AttributeError):  # a closed pipe, a closed stream, or no stream
        print(printable(shortened(text)), file=sys.stderr, flush=True)  # noqa: T201 - this is what prints
