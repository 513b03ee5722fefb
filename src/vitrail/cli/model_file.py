"""Flags that every verb about a file of weights has, and how they are read."""

from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.cli.report import flag, parse_size


@dataclass(frozen=True, kw_only=True)
class FileFlags:
    """What a file of another library may not say."""

    image_size: Annotated[str | None, flag("PIXELS|HxW", "what the file tells")] = None
    """Height and width of the images that the model is for, where the file does not tell (a grid that is no square)."""
    num_heads: Annotated[int | None, flag("INT", "what the file tells")] = None
    """Attention heads, where the file does not tell."""
    architecture: Annotated[str | None, flag("NAME", "what the file tells")] = None
    """The model's name in its library, such as timm's, or of a way to prepare images (google, timm, huggingface,
    torchvision, swag, imagenet, clip), where the file does not tell."""


def hints(flags: FileFlags) -> dict[str, Any]:
    """Return the settings that were given."""
    size = None if flags.image_size is None else parse_size(flags.image_size)
    settings = {"image_size": size, "num_heads": flags.num_heads, "architecture": flags.architecture}
    return {name: value for name, value in settings.items() if value is not None}
