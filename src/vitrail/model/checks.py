"""Refusals that every config of a model shares: each names the field, its value and what fits."""

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.numbers import check_whole
from vitrail.model.patches import Size

LARGEST_SIZE = 10**7
"""Of a width, an image, a number of classes: more than any model has, and few enough to multiply."""
LARGEST = {"depth": 4096, "blocks": 4096, "stages": 64}
"""The same for what is built one by one."""


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise ConfigError(
            f"{name} is {value!r}, but must be one of {', '.join(choices)}.{did_you_mean(str(value), choices)}"
        )


def check_positive(**values: int) -> None:
    """Refuse anything but whole numbers from 1."""
    for name, value in values.items():
        check_whole(name, value, most=LARGEST.get(name.partition("[")[0], LARGEST_SIZE))


def check_count(name: str, value: int) -> None:
    """Refuse anything but whole numbers from 0."""
    check_whole(name, value, least=0, most=LARGEST_SIZE)


def check_size(name: str, size: Size) -> None:
    """Refuse anything but a pair of positive whole numbers."""
    if not isinstance(size, tuple) or len(size) != 2:
        raise ConfigError(f"`{name}` is {size!r}, but must be (height, width), two whole numbers of at least 1.")
    for side in size:
        check_whole(name, side, most=LARGEST_SIZE)


def check_probability(**values: float) -> None:
    """Refuse anything outside [0, 1)."""
    for name, value in values.items():
        if not isinstance(value, int | float) or not 0 <= value < 1:
            raise ConfigError(f"{name} is {value!r}, but must be a probability from 0 to below 1.")


def check_divides(divisor_name: str, divisor: int, name: str, value: int) -> None:
    """Refuse a value that does not split evenly."""
    if value % divisor:
        fit = max(value // divisor, 1) * divisor
        raise ConfigError(
            f"{name} {value} is not divisible by {divisor_name} {divisor}; "
            f"choose a {name} such as {fit} or {fit + divisor}, or a {divisor_name} that divides {value}."
        )
