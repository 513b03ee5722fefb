"""timm's BiT ResNet (resnetv2) under our names."""

import re

from torch import Tensor

_RULES = [
    (r"stem\.conv\.weight", r"root.weight"),
    (r"stages\.(\d+)\.blocks\.(\d+)\.downsample\.conv\.weight", r"stages.\1.\2.shortcut.weight"),
    (r"stages\.(\d+)\.blocks\.(\d+)\.((?:conv|norm)\d\.\w+)", r"stages.\1.\2.\3"),
    (r"norm\.(weight|bias)", r"norm.\1"),
    (r"head\.fc\.(weight|bias)", r"linear.\1"),
]


def to_vitrail(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename all parameters; an unknown name is a KeyError. timm's last layer is a 1x1 convolution."""
    return {_rename(name): value.flatten(1) if name == "head.fc.weight" else value for name, value in state.items()}


def _rename(name: str) -> str:
    for pattern, ours in _RULES:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, ours, name)
    raise KeyError(name)
