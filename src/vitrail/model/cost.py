"""The cost of a model, from its config alone: parameters, multiply-accumulates, values kept for the backward pass."""

from dataclasses import dataclass

from vitrail.base.readable import counted
from vitrail.base.table import Table, Tabular
from vitrail.model.build import build
from vitrail.model.family import ModelConfig


@dataclass(frozen=True, kw_only=True, repr=False)
class Cost(Tabular):
    """The cost of one image."""

    parameters: int
    """Trainable values."""
    tokens: int | None
    """Length of the sequence; None for a model without tokens."""
    macs: int
    """Multiply-accumulates of one forward pass as the paper counts them: every token through every block."""
    activations: int
    """Values kept for the backward pass."""
    checkpointed_activations: int
    """The same when blocks, or the units of a ResNet, keep only their input and are computed again."""

    def tables(self) -> list[Table]:
        """Return the figures with notes."""
        rows = (
            ("parameters", f"{self.parameters:,}", counted(self.parameters)),
            ("tokens", str(self.tokens or "-"), ""),
            ("MACs", f"{self.macs:,}", counted(self.macs)),
            ("activations", f"{self.activations:,}", "values kept for the backward pass"),
            ("checkpointed", f"{self.checkpointed_activations:,}", "when blocks are computed again"),
        )
        return [Table(columns=("", "of one image", "note"), rows=rows)]


def cost(config: ModelConfig) -> Cost:
    """Add up the parts of a model without allocating a weight."""
    model = build(config, device="meta")
    units = model.units()
    return Cost(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        tokens=config.sequence or None,
        macs=sum(unit.macs for unit in units),
        activations=sum(unit.activations for unit in units),
        checkpointed_activations=sum(unit.entry for unit in units) + max(unit.activations for unit in units),
    )
