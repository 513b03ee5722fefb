"""Compare two models, whatever their formats."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError
from vitrail.base.readable import value_text
from vitrail.base.table import Table, Tabular
from vitrail.base.tensors import shape_text
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import describe_model
from vitrail.checkpoint.store import describe
from vitrail.model.contract import Model
from vitrail.model.patches import Size
from vitrail.verbs.weights import open_weights


@dataclass(frozen=True, kw_only=True)
class SettingDifference:
    """A setting that differs."""

    name: str
    """Its path, such as config.dropout."""
    first: Any
    """Its value in the first model; None where it is absent."""
    second: Any
    """Its value in the second."""


@dataclass(frozen=True, kw_only=True)
class TensorDifference:
    """A tensor that differs."""

    name: str
    """Its name in the state dict."""
    first: float | str
    """Where it differs most, its value in the first model; its shape where the shapes differ, or `none`."""
    second: float | str
    """The same in the second."""
    largest_difference: float | None
    """The largest difference of a weight; None where the shapes differ."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Difference(Tabular):
    """How two models differ."""

    first: str
    """The first model: its file, or `the model` for one in memory."""
    second: str
    """The second."""
    compared: int
    """How many tensors both have."""
    settings: tuple[SettingDifference, ...]
    """Settings, labels and preprocessing that differ."""
    tensors: tuple[TensorDifference, ...]
    """Tensors that differ by more than the tolerance, or that only one has."""

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.settings and not self.tensors

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "same": self.same,
            "compared": self.compared,
            "settings": [asdict(difference) for difference in self.settings],
            "tensors": [asdict(difference) for difference in self.tensors],
        }

    def tables(self) -> list[Table]:
        """Return one table with a row for each difference."""
        differences: list[SettingDifference | TensorDifference] = [*self.settings, *self.tensors]
        rows = tuple((one.name, value_text(one.first), value_text(one.second)) for one in differences)
        differing = f"{len(self.tensors)} differ, and {len(self.settings)} settings."
        title = f"Differences of {self.first} (first) and {self.second} (second)"
        notes = (f"{self.compared} tensors are in both; {differing}",)
        return [Table(title=title, columns=("", "first", "second"), rows=rows, notes=notes)]


def diff(
    first: str | Path | Model,
    second: str | Path | Model,
    *,
    tolerance: float = 0.0,
    pickle: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
) -> Difference:
    """Compare two models: settings, and tensor by tensor the largest difference.

    Each is a file or folder of any format, or a model in memory. A difference of a weight up to `tolerance` counts as
    none. The other keywords are those of `vitrail.show`, for both files.

    >>> difference = vitrail.diff("model.safetensors", "other.safetensors")
    >>> difference.same, [tensor.name for tensor in difference.tensors]
    (False, ['head.linear.bias'])
    """
    if not tolerance >= 0:
        raise ConfigError(f"tolerance is {tolerance}, but must be at least 0.")

    def contents(model: str | Path | Model) -> Contents:
        if isinstance(model, str | Path):
            return open_weights(
                model, pickle=pickle, image_size=image_size, num_heads=num_heads, architecture=architecture
            )
        return describe_model(model)

    one, other = contents(first), contents(second)
    return Difference(
        first=str(first) if isinstance(first, str | Path) else "the model",
        second=str(second) if isinstance(second, str | Path) else "the model",
        compared=sum(name in other.tensors for name in one.tensors),
        settings=_settings(one, other),
        tensors=_tensors(one, other, tolerance),
    )


def _settings(one: Contents, other: Contents) -> tuple[SettingDifference, ...]:
    """List the settings that differ, without the provenance of the weights."""
    ours, theirs = (_flat({**describe(contents), "provenance": {}}) for contents in (one, other))
    return tuple(
        SettingDifference(name=name, first=ours.get(name), second=theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _tensors(one: Contents, other: Contents, tolerance: float) -> tuple[TensorDifference, ...]:
    """List the tensors that differ, with one pair in memory at a time."""
    names = [*one.tensors, *(name for name in other.tensors if name not in one.tensors)]
    differences = (_tensor(name, one, other, tolerance) for name in names)
    return tuple(difference for difference in differences if difference is not None)


def _tensor(name: str, one: Contents, other: Contents, tolerance: float) -> TensorDifference | None:
    shapes = [contents.tensors.shapes.get(name) for contents in (one, other)]
    if shapes[0] != shapes[1] or None in shapes:
        texts = ["none" if shape is None else shape_text(shape) for shape in shapes]
        return TensorDifference(name=name, first=texts[0], second=texts[1], largest_difference=None)
    ours, theirs = one.tensors[name].double(), other.tensors[name].double()
    differs = (ours != theirs) & ~(ours.isnan() & theirs.isnan())
    if not differs.any():
        return None
    gap = (ours - theirs).abs()
    largest = gap[differs].max().item()
    if largest <= tolerance:
        return None
    at = int(differs.double().mul(gap.nan_to_num(float("inf"))).argmax())
    values = {"first": ours.flatten()[at].item(), "second": theirs.flatten()[at].item()}
    return TensorDifference(name=name, **values, largest_difference=largest)
