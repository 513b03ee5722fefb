"""What accompanies the weights of a model, in its file and in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vitrail.data.preprocessing import Preprocessing


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Everything about a model but its settings and weights."""

    labels: tuple[str, ...] | None = None
    """The name of each class."""
    preprocessing: Preprocessing | None = None
    """How images become input."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Where the weights come from: data, settings, figures, versions."""
    digest: str | None = None
    """SHA-256 of the file that the weights come from, already verified."""
    notes: tuple[str, ...] = ()
    """What the user should know about what was read or changed, a sentence each."""
