"""What a model needs against what a file has: one message with every difference."""

from collections.abc import Mapping
from dataclasses import dataclass

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import Shape, TensorSource, shape_text


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """Every difference between two lists of named shapes."""

    missing: tuple[str, ...] = ()
    """Needed, and not there."""
    unexpected: tuple[str, ...] = ()
    """There, and not needed."""
    misshapen: tuple[str, ...] = ()
    """In both, with another shape."""

    def __bool__(self) -> bool:
        """Return whether there is any difference."""
        return bool(self.missing or self.unexpected or self.misshapen)

    def __str__(self) -> str:
        """List every difference, a line each."""
        lines = []
        for kind in ("missing", "unexpected", "misshapen"):
            names = getattr(self, kind)
            lines += [f"  {kind} ({len(names)}):"] * bool(names) + [f"    {name}" for name in names]
        return "\n".join(lines)


def compare(needed: Mapping[str, Shape], present: Mapping[str, Shape]) -> Misfit:
    """Find every difference between what is needed and what there is."""
    return Misfit(
        missing=tuple(f"{name} {shape_text(needed[name])}" for name in needed if name not in present),
        unexpected=tuple(f"{name} {shape_text(present[name])}" for name in present if name not in needed),
        misshapen=tuple(
            f"{name} is {shape_text(present[name])}, but {shape_text(needed[name])} is needed"
            for name in needed
            if name in present and tuple(present[name]) != tuple(needed[name])
        ),
    )


def check_match(needed: Mapping[str, Shape], present: TensorSource, what: str, *, advice: str) -> None:
    """Refuse tensors that are not exactly those needed, and weights that are not floating point."""
    misfit = compare(needed, present.shapes)
    if misfit:
        raise CheckpointError(f"{present.origin} does not fit {what}; {advice}\n{misfit}")
    odd = [name for name in needed if (kind := present.specs[name].dtype) is None or not kind.is_floating_point]
    if odd:
        kinds = ", ".join(f"{name} ({present.specs[name].dtype or 'unknown'})" for name in odd)
        raise CheckpointError(f"weights are floating-point numbers, but {present.origin} holds others: {kinds}.")
