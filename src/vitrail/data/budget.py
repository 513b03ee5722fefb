"""How much of a data set may be broken before it is refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitrail.base.errors import ConfigError, InputError

Skipped = tuple[str, str]
"""Images that were left out, with reasons."""

_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The images that may be skipped: a number of them, or a share of all."""

    count: int = 0
    """Images that may be skipped whatever the total."""
    share: float = 0.0
    """The share of all images that may be skipped, from 0 to 1."""

    def __post_init__(self) -> None:
        """Refuse values outside their bounds."""
        if self.count < 0 or not 0 <= self.share <= 1:
            raise ConfigError(
                f"a budget of {self.count} images and a share of {self.share} cannot be; "
                "give a count from 0 on, or a share from 0% to 100%."
            )

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """Read `5` (images) or `1%` (of all images)."""
        number = text.strip()
        try:
            if number.endswith("%"):
                return cls(share=float(number[:-1]) / 100)
            return cls(count=int(number))
        except ValueError:
            raise ConfigError(
                f"{text!r} is not a budget of broken files; give a number such as 5, or a share such as 1%."
            ) from None

    def allowed(self, total: int) -> int:
        """Return how many of `total` images may be skipped."""
        return max(self.count, int(self.share * total + 1e-9))

    def left(self, total: int, skipped: Sequence[Skipped]) -> "Budget | None":
        """Return what may still be skipped of `total` images, since opening the data has spent some; None for none."""
        count = self.allowed(total) - len(skipped)
        return Budget(count=count) if count > 0 else None

    def spend(self, skipped: Sequence[Skipped], total: int, *, where: str = "the data") -> None:
        """Refuse the data when more was skipped than allowed, with the names of the first ones; `total` counts both."""
        if len(skipped) <= self.allowed(total):
            return
        listing = "; ".join(f"{name} ({reason})" for name, reason in skipped[:_SHOWN])
        more = f"; and {len(skipped) - _SHOWN} more" if len(skipped) > _SHOWN else ""
        share = 100 * len(skipped) / max(total, 1)
        raise InputError(
            f"{where}: {len(skipped)} of {total} images are broken or missing, and {self.allowed(total)} may be: "
            f"{listing}{more}. Fix them, or set `skip_broken` to {_rounded_up(share)}."
        )


def named(skipped: Sequence[Skipped]) -> str:
    """Name the first three of what was left out, and count the others."""
    first = "; ".join(f"{name} ({reason})" for name, reason in skipped[:3])
    return first + (f" and {len(skipped) - 3} more" if len(skipped) > 3 else "")


def _rounded_up(percent: float) -> str:
    """Return a share that is enough, in whole percents or tenths."""
    tenths = int(percent * 10) + 1
    return f"{min(tenths / 10, 100.0):g}%" if percent < 1 else f"{min(int(percent) + 1, 100)}%"
