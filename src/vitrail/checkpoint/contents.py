"""Everything that a file states about a model, in our own names."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vitrail.base.errors import ConfigError
from vitrail.base.limits import TOKENS
from vitrail.base.tensors import Shape, TensorSource
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.build import build
from vitrail.model.family import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A model as a file describes it: nothing is read from `tensors` until it is needed."""

    format: str
    """The layout of the file: vitrail, google, big-vision, timm, ..."""
    config: ModelConfig
    """The model, with the numerics of the library that it comes from."""
    tensors: TensorSource
    """Weights by the names of our state dict."""
    labels: tuple[str, ...] | None = None
    """The name of each class."""
    preprocessing: Preprocessing | None = None
    """How images become input."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Where the weights come from."""
    doubt: str | None = None
    """What must be known before the model is used and that neither the file nor the user states: a sentence that names
    the setting which answers it."""
    digest: str | None = None
    """SHA-256 that the file carries and that was checked."""
    notes: tuple[str, ...] = ()
    """What somebody should know about what was read or changed, a sentence each."""

    def noting(self, *notes: str, **changes: Any) -> "Contents":
        """Return the same with changes, and notes about them."""
        return dataclasses.replace(self, notes=self.notes + notes, **changes)


def needed_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Return name and shape of every tensor that a model stores."""
    TOKENS.check(config.sequence, f"a {config.noun} of {config.summary}", ConfigError)
    try:
        model = build(config, device="meta")
    except (RuntimeError, OverflowError) as error:  # torch's, of more values than it can count
        raise ConfigError(f"a {config.noun} of such sizes cannot be built: {config.summary}.") from error
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
