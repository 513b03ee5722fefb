"""List models with their costs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

from vitrail.base.errors import ConfigError, GridError
from vitrail.base.table import Table, Tabular
from vitrail.model.build import as_size, configure
from vitrail.model.cost import Cost
from vitrail.model.cost import cost as cost_of
from vitrail.model.patches import Size, size_text
from vitrail.model.variants import NAMES
from vitrail.verbs.patterns import matching


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A model by name."""

    name: str
    """The name that `vitrail.create` takes."""
    cost: Cost
    """Parameters, tokens, multiply-accumulates and activations."""

    @property
    def parameters(self) -> int:
        """Trainable values."""
        return self.cost.parameters

    @property
    def tokens(self) -> int | None:
        """Length of the sequence; None for a ResNet."""
        return self.cost.tokens

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one forward pass."""
        return self.cost.macs

    def __repr__(self) -> str:
        """Write it in a line."""
        return f"{self.name}: {self.parameters:,} parameters, {self.tokens or 'no'} tokens, {self.macs:,} MACs"


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelList(Tabular, Sequence[ModelRow]):
    """Models at one image size."""

    rows: tuple[ModelRow, ...]
    """The models, in the order of the paper's tables."""
    image_size: Size
    """Height and width of the images, in pixels."""
    num_classes: int
    """Outputs of the last layer."""
    misfits: tuple[str, ...] = ()
    """Models that the pattern names, but whose patches do not divide the image."""

    def __len__(self) -> int:
        """Count the models."""
        return len(self.rows)

    def __iter__(self) -> Iterator[ModelRow]:
        """Walk over the models."""
        return iter(self.rows)

    @overload
    def __getitem__(self, at: int) -> ModelRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ModelRow]: ...
    def __getitem__(self, at: int | slice) -> ModelRow | Sequence[ModelRow]:
        """Return a model by its place."""
        return self.rows[at]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(row.name for row in self.rows)

    def tables(self) -> list[Table]:
        """Return one table with a row for each model."""
        size = size_text(self.image_size)
        listed = ", ".join(self.misfits)
        notes = (f"Not listed, since their patches do not divide {size}: {listed}.",) if self.misfits else ()
        cells = tuple(
            (
                row.name,
                f"{row.parameters:,}",
                f"{row.parameters / 1e6:.2f}",
                str(row.tokens or "-"),
                f"{row.macs / 1e9:.2f}",
            )
            for row in self.rows
        )
        title = f"Models at {size} pixels with {self.num_classes} classes"
        columns = ("model", "parameters", "millions", "tokens", "GMACs")
        return [Table(title=title, columns=columns, rows=cells, notes=notes)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "image_size": list(self.image_size),
            "num_classes": self.num_classes,
            "models": [{"name": row.name} | asdict(row.cost) for row in self.rows],
            "misfits": list(self.misfits),
        }


def list_models(
    pattern: str | Iterable[str] = "*",
    *,
    image_size: int | Size = 224,
    num_classes: int = 1000,
    channels: int = 3,
) -> ModelList:
    """List models with their parameters, tokens and multiply-accumulates (MACs) of one image.

    `pattern` is a name ("B/16", also "B/12", which no table has), a pattern ("B/*", "R50*"), or several of them.
    Models of a pattern whose patches do not divide `image_size` are left out and named in `misfits`; a model that is
    given by its name is refused then.

    >>> models = vitrail.list_models("B/*", num_classes=10)
    >>> models.names
    ('B/8', 'B/14', 'B/16', 'B/32')
    >>> models[2].parameters
    85806346
    """
    size, rows, misfits = as_size(image_size), [], []
    for name, exact in matching(pattern, NAMES, kind="model").items():
        try:
            config = configure(name, image_size=size, num_classes=num_classes, channels=channels)
        except GridError:
            if exact:
                raise
            misfits.append(name)
            continue
        rows.append(ModelRow(name=name, cost=cost_of(config)))
    if not rows and misfits:
        raise GridError(f"no model has patches that divide {size_text(size)} pixels; choose another image size.")
    if not rows:
        raise ConfigError("there is no pattern; '*' lists every model.")
    return ModelList(rows=tuple(rows), image_size=size, num_classes=num_classes, misfits=tuple(misfits))
