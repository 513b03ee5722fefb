"""Record how other libraries turn an image into a model's input, for tests/data/test_transforms.py.

Run it in an environment with timm, torchvision and transformers (see benchmarks/), and in one with TensorFlow:

    PYTHONPATH=benchmarks:. python tests/golden/record_preprocessing.py peers
    PYTHONPATH=. python tests/golden/record_preprocessing.py tensorflow

Each writes tests/golden/preprocessing/*.npz anew, with every seventh pixel of every seventh row (eleventh from 384
pixels on): enough to see any shift, and small.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.golden.preprocessing_images import GREY, SIZES, photo

FOLDER = Path(__file__).parent / "preprocessing"


def peers() -> tuple[str, dict[str, Callable[[Image.Image], np.ndarray]]]:
    """The transforms of timm, torchvision and Hugging Face, as a user of each gets them."""
    import peers_shim  # noqa: F401  goes before timm and torchvision

    # isort: split
    import timm
    import torchvision
    import transformers
    from timm.data import create_transform, resolve_data_config
    from torchvision.models import ViT_B_16_Weights

    def from_timm(name: str, **changes):
        config = resolve_data_config(pretrained_cfg=timm.get_pretrained_cfg(name).to_dict()) | changes
        return lambda image: create_transform(**config)(image).numpy()

    def from_hugging_face(kind, **changes):
        processor = kind(**changes)
        return lambda image: np.asarray(processor(image, return_tensors="np")["pixel_values"][0])

    hub, pil = transformers.ViTImageProcessor, transformers.ViTImageProcessorPil
    versions = (
        f"timm {timm.__version__}, torchvision {torchvision.__version__}, transformers {transformers.__version__}"
    )
    return versions, {
        "timm 224": from_timm("vit_base_patch16_224"),
        "timm 384": from_timm("vit_base_patch16_384"),
        "timm 224x288": from_timm("vit_base_patch16_224", input_size=(3, 224, 288)),
        "torchvision 224": lambda image: ViT_B_16_Weights.IMAGENET1K_V1.transforms()(image).numpy(),
        "torchvision 384": lambda image: ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1.transforms()(image).numpy(),
        "huggingface 224": from_hugging_face(hub),
        "huggingface 224 bicubic": from_hugging_face(hub, resample=Image.Resampling.BICUBIC),
        "huggingface pil 224": from_hugging_face(pil),
        "huggingface pil 224 bicubic": from_hugging_face(pil, resample=Image.Resampling.BICUBIC),
        "huggingface pil 224 lanczos": from_hugging_face(pil, resample=Image.Resampling.LANCZOS),
        "huggingface pil 224 nearest": from_hugging_face(pil, resample=Image.Resampling.NEAREST),
    }


def tensorflow() -> tuple[str, dict[str, Callable[[Image.Image], np.ndarray]]]:
    """What the reference release does with TensorFlow: resize as a whole, then pixels from -1 to 1."""
    import tensorflow as tf

    def resized(side: int):
        def transform(image: Image.Image) -> np.ndarray:
            pixels = tf.image.resize(np.asarray(image), [side, side])
            return ((pixels - 127.5) / 127.5).numpy().transpose(2, 0, 1)

        return transform

    return f"tensorflow {tf.__version__}", {"google 224": resized(224), "google 384": resized(384)}


if __name__ == "__main__":
    versions, transforms = {"peers": peers, "tensorflow": tensorflow}[sys.argv[1]]()
    images = {f"{height}x{width}": Image.fromarray(photo(height, width)) for height, width in SIZES}
    images[f"{GREY[0]}x{GREY[1]} grey"] = Image.fromarray(photo(*GREY, 1)[:, :, 0]).convert("RGB")
    values = {}
    for name, transform in transforms.items():
        step = 11 if "384" in name else 7
        for size, image in images.items():
            values[f"{name}:{size}"] = transform(image)[:, ::step, ::step].astype(np.float32)
    path = FOLDER / f"{sys.argv[1]}.npz"
    np.savez_compressed(path, recorded_with=np.array(versions), **values)
    print(path, f"{path.stat().st_size / 1024:.0f} KiB", versions)
