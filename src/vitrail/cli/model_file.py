"""Flags that every verb about a file of weights has, and how they are read."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import read
from vitrail.cli.report import ImageSize, parse_size


@dataclass(frozen=True, kw_only=True)
class FileFlags:
    """What a file of another library may not say."""

    image_size: ImageSize | None = None
    """Height and width of the images that the model is for, where the file does not tell (a grid that is no square)."""
    num_heads: int | None = None
    """Attention heads, where the file does not tell."""


def hints(flags: FileFlags) -> dict[str, Any]:
    """Return the settings that were given."""
    found: dict[str, Any] = {} if flags.num_heads is None else {"num_heads": flags.num_heads}
    return found if flags.image_size is None else found | {"image_size": parse_size(flags.image_size)}


def open_file(path: str, flags: FileFlags, *, pickle: bool) -> Contents:
    """Read what a file says."""
    return read(path, pickle=pickle, **hints(flags))


def parameters(contents: Contents) -> int:
    """Count the weights that a file stores."""
    total = 0
    for shape in contents.tensors.shapes.values():
        count = 1
        for side in shape:
            count *= side
        total += count
    return total


def sha256(path: Path) -> str:
    """Compute the digest of a file, or of the weights of a folder."""
    names = ("model.safetensors", "pytorch_model.bin")
    file = next((path / name for name in names if (path / name).is_file()), path) if path.is_dir() else path
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
