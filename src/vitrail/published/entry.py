"""What is known about a published checkpoint before it is on this machine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vitrail.base.errors import ConfigError

_HEX = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True, kw_only=True)
class Published:
    """A checkpoint that somebody published, by the name that it has here."""

    name: str
    """What `vitrail pull` takes, such as dinov2-S/14."""
    source: str
    """Where it is published: an https address, or hf:OWNER/NAME for a repository of Hugging Face."""
    licence: str
    """Under which licence, by its SPDX name where it has one."""
    data: str
    """What it was trained on."""
    image_size: int
    """Height and width of the images that it is for, in pixels."""
    pixels: str
    """How images become its input: the name of a preset of preprocessing. The file itself is what is read."""
    num_heads: int
    """Attention heads; 0 for a ResNet. The file itself is what is read."""
    classes: int = 0
    """Outputs of its head; 0 where it has only a representation."""
    gated: bool = False
    """Whether its licence has to be accepted on the page of its repository first, which takes a token."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """Settings for `vitrail.load` that the file does not state; the user's own settings come first."""
    size: int | None = None
    """Bytes of the weights, where known; otherwise recorded at the first download."""
    sha256: str | None = None
    """SHA-256 of the weights or its beginning, where known; otherwise recorded at the first download."""

    def __post_init__(self) -> None:
        """Refuse a digest that is none."""
        if self.sha256 is not None and not _HEX.fullmatch(self.sha256):
            raise ConfigError(f"sha256 of {self.name} is {self.sha256!r}, but must be 8 to 64 hexadecimal digits.")
