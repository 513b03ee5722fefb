"""Names and patterns of names, as in `vitrail.list_models("B/*")`."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from vitrail.base.errors import ConfigError, did_you_mean


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern: whether it has a star, a question mark or brackets."""
    return any(letter in text for letter in "*?[")


def matching(patterns: str | Iterable[str], names: Sequence[str], *, kind: str) -> dict[str, bool]:
    """Return the names that match patterns, each with whether it was named exactly, in the order of the patterns.

    A text that is not a pattern is taken as a name, also where `names` does not list it. A pattern that fits no name
    is refused; `kind` is the kind of the names, for the error.
    """
    chosen: dict[str, bool] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        fitting = [name for name in names if fnmatchcase(name, pattern)] if is_pattern(pattern) else [pattern]
        if not fitting:
            hint = did_you_mean(pattern.strip("*?"), names)
            raise ConfigError(f"the pattern {pattern!r} matches no {kind}; '*' matches all of them.{hint}")
        for name in fitting:
            chosen[name] = chosen.get(name, False) or not is_pattern(pattern)
    return chosen
