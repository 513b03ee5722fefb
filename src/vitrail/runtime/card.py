"""What an exported file carries beside its graph; imports no torch."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.base.settings import from_dict, to_dict
from vitrail.data.preprocessing import Preprocessing
from vitrail.runtime.choice import Precision

Entry = Literal["image", "pixels", "input"]
"""What goes in: whole images of any size (uint8, batch height width channel), the same at the model's size, or the
model's own input (float32, batch channel height width, normalised)."""

KEY = "vitrail"
"""The name under which a file stores its card."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts about a graph."""

    entry: Entry
    """What goes in."""
    preprocessing: Preprocessing
    """How an image becomes the model's input: inside the graph or before it."""
    num_classes: int
    """Outputs of the last layer; 0 where there is only a representation."""
    feature_width: int
    """Numbers of the representation."""
    outputs: tuple[str, ...]
    """The names of the outputs."""
    labels: tuple[str, ...] | None = None
    """The name of each class."""
    precision: Precision = "float32"
    """The numbers that most of it computes with."""
    model: str = ""
    """The model in a few words."""
    grid: tuple[int, int] | None = None
    """Rows and columns of patches; None where there are none."""
    prefix: int = 0
    """Tokens before those of the patches."""
    attention_shape: tuple[int, int] = (0, 0)
    """Blocks and heads of the model that have attention maps."""
    attention_blocks: tuple[int, ...] = ()
    """The blocks whose maps are in the output `attention`, in its order."""
    merge_tokens: int = 0
    """How many tokens each block merges into others."""
    source: str | None = None
    """SHA-256 of the file that it was made from."""
    versions: dict[str, str] = field(default_factory=dict)
    """The programs that wrote it."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Where the weights come from."""
    notes: tuple[str, ...] = ()
    """What was done to it, a sentence each."""

    def text(self) -> str:
        """Return the card as JSON."""
        return json.dumps(to_dict(self), separators=(",", ":"))


def read_card(text: str, path: Path) -> Card:
    """Read a card from the file that carries it."""
    try:
        return from_dict(Card, json.loads(text), where=f"the facts in {path}")
    except (ValueError, RecursionError, ConfigError) as error:
        raise CheckpointError(f"{path} does not describe itself as an exported model does: {error}") from None
