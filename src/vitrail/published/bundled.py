"""The backbone that is shipped inside the package: a small pre-trained Vision Transformer for everybody's photos.

`vitrail finetune photos/` begins with it; its name stands for its path wherever a model is taken. The file is one of
our own with float16 weights and its own SHA-256; docs/backbone.md is its model card, and NOTICE beside it states what
it was trained on. `vitrail train DATA --recipe backbone` makes it again.
"""

from importlib import resources
from pathlib import Path

BACKBONE = "backbone"
FILE = "backbone.safetensors"


def backbone_path() -> Path:
    """Return where the file of the backbone lies."""
    return Path(str(resources.files("vitrail.published"))) / BACKBONE / FILE
