"""Names of files and classes on a screen: they may hold anything, and a screen obeys some of it."""

import re

_ORDERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves the cursor, ends a line, turns the direction of writing, or is no character at all."""


def printable(text: str) -> str:
    """Write out what would be obeyed instead of shown: the end of a line as backslash and n."""
    return _ORDERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
