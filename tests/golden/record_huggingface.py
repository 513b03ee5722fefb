"""Record what Hugging Face's `datasets` writes: run with `datasets` and Pillow installed, in an environment of its own.

    python tests/golden/record_huggingface.py tests/golden/huggingface_saved

Recorded with datasets 5.2.0.
"""

import sys

from datasets import ClassLabel, Dataset, DatasetDict, Features, Image
from PIL import Image as Pillow

FEATURES = Features({"image": Image(), "label": ClassLabel(names=["cat", "dog"])})


def made(count: int, first: int) -> Dataset:
    """Plain images whose colour tells their number."""
    images = [Pillow.new("RGB", (4, 3), (number + first, 2 * number, 3)) for number in range(count)]
    return Dataset.from_dict({"image": images, "label": [number % 2 for number in range(count)]}, features=FEATURES)


if __name__ == "__main__":
    DatasetDict({"train": made(5, 0), "test": made(2, 100)}).save_to_disk(sys.argv[1])
