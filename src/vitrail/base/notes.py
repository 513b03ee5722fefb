"""What a function reports besides its result: sentences to the caller's listener, or to the log."""

import logging
from collections.abc import Callable

Note = Callable[[str], None]
"""Takes a sentence that the user should read."""


def logged(sentence: str) -> None:
    """Write a sentence to the log `vitrail`, which Python prints by default."""
    logging.getLogger("vitrail").warning("%s", sentence)


def unheard(sentence: str) -> None:
    """Drop a sentence."""
