"""The embedded data set: 600 training and 100 test images of each of Fashion-MNIST's ten classes.

`tools/make_sample.py` made it from Debian's package dataset-fashion-mnist; its licence (MIT) is in NOTICE beside it.
"""

from importlib import resources
from pathlib import Path

from vitrail.data.sources.npz import open_npz
from vitrail.data.sources.pile import Pile

NAME = "sample"
FILE = "fashion-mnist.npz"


def open_sample() -> Pile:
    """Read the sample that is shipped with the package."""
    with resources.as_file(resources.files("vitrail.data") / "sample" / FILE) as path:
        return open_npz(Path(path), called=NAME)
