"""Pillow's warnings kept from the user's screen: problems of an image are reported by an `ImageError`."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, cast

_IGNORE_PILLOW = ("ignore", None, Warning, re.compile(r"PIL\."), 0)
_lock = Lock()
_users = 0


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Silence the warnings of Pillow's own modules, and no others, while any thread is in here.

    `warnings.catch_warnings` is not for threads: they would restore each other's filters. It would also make every
    "once for each place" warning of the whole program appear again after each image; adding and removing one filter
    does neither.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _users
    with _lock:
        filters = cast(list[Any], warnings.filters)
        if _users == 0:
            filters.insert(0, _IGNORE_PILLOW)
        _users += change
        if _users == 0 and _IGNORE_PILLOW in filters:  # other code may have restored older filters meanwhile
            filters.remove(_IGNORE_PILLOW)
