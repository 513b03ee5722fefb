"""Files of weights as the verbs take them, with settings that a file of another library does not state."""

import math
from pathlib import Path
from typing import Any

from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import read
from vitrail.model.patches import Size


def open_weights(
    path: str | Path,
    *,
    pickle: bool,
    image_size: int | Size | None,
    num_heads: int | None,
    architecture: str | None,
) -> Contents:
    """Read a file's settings; its tensors are read when they are needed."""
    hints: dict[str, Any] = {"image_size": image_size, "num_heads": num_heads, "architecture": architecture}
    return read(path, pickle=pickle, **{name: value for name, value in hints.items() if value is not None})


def count_parameters(contents: Contents) -> int:
    """Count the weights that a file stores."""
    return sum(math.prod(shape) for shape in contents.tensors.shapes.values())
