"""Flags that every verb about a file of weights has, and how they are read."""

from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.cli.report import Switch, flag, parse_size


@dataclass(frozen=True, kw_only=True)
class FileFlags:
    """Settings that a file of another library may not state."""

    image_size: Annotated[str | None, flag("PIXELS|HxW", "that of the file")] = None
    """Height and width of the model's images, where the file does not state them (a grid that is not square)."""
    num_heads: Annotated[int | None, flag("INT", "that of the file")] = None
    """Attention heads, where the file does not state them."""
    architecture: Annotated[str | None, flag("NAME", "that of the file")] = None
    """The model's name in its library, such as timm's, or of a way to prepare images (google, timm, huggingface,
    torchvision, swag, imagenet, clip), where the file does not state it."""
    pull: Switch = False
    """Download the published model that is named, unless it is on this machine already."""


def hints(flags: FileFlags) -> dict[str, Any]:
    """Return the settings that have a value."""
    size = None if flags.image_size is None else parse_size(flags.image_size)
    settings = {"image_size": size, "num_heads": flags.num_heads, "architecture": flags.architecture}
    return {name: value for name, value in settings.items() if value is not None}
