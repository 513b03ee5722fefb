"""Numbers that settings may have: each refusal names the setting, its value and the bounds."""

import operator
from typing import Any

from vitrail.base.errors import ConfigError

MANY = 10**9
"""More than any count has a use for; what is beyond it is a slip, and would hang or fail late."""
MOST_BATCH = 10**7
MOST_WORKERS = MOST_THREADS = 1024
MOST_MERGED = 10_000
MOST_SEED = 2**63 - 1


def check_whole(name: str, value: Any, *, least: int = 1, most: int = MANY) -> int:
    """Return a whole number within bounds; text, fractions and truth values are refused."""
    try:
        number = operator.index(value) if not isinstance(value, bool) else None  # NumPy's whole numbers are some too
    except TypeError:
        number = None
    if number is None or number < least:
        raise ConfigError(f"{name} is {value!r}, but must be a whole number of at least {least}.")
    if number > most:
        raise ConfigError(f"{name} is {value!r}, but must be a whole number of at most {most:,}.")
    return number
