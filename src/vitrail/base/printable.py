"""Text that is safe on a terminal: names of files and classes may have control characters."""

import re

_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, end a line or turn the direction of writing, and lone surrogates."""


def printable(text: str) -> str:
    """Escape control characters: the end of a line becomes backslash and n."""
    return _ORDERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
