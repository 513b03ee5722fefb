"""What formats of model files are called, for who chooses one; nothing is imported for it."""

from typing import Literal, get_args

FormatName = Literal["vitrail", "google", "google-linen", "big-vision", "timm", "huggingface", "torchvision"]
NAMES: tuple[str, ...] = get_args(FormatName)
