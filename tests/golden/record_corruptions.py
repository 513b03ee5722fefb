"""Records what the published program of ImageNet-C makes of a made scene; run it outside of the project's environment.

    python tests/golden/record_corruptions.py CHECKOUT

CHECKOUT is github.com/hendrycks/robustness (Apache-2.0), of which nothing is copied here: its functions are called, and
a few pixels of their outputs are stored. It needs numpy, scipy, scikit-image, opencv-python-headless, wand and Pillow.
Only corruptions without draws are recorded, and motion blur with its angle set to 30 degrees.
"""

import sys
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

OUT = Path(__file__).parent / "corruptions.npz"
PROGRAMS = {224: "make_imagenet_c", 64: "make_tinyimagenet_c", 32: "make_cifar_c"}
RECORDED = {
    "defocus-blur": "defocus_blur",
    "motion-blur": "motion_blur",
    "zoom-blur": "zoom_blur",
    "brightness": "brightness",
    "contrast": "contrast",
    "pixelate": "pixelate",
    "jpeg": "jpeg_compression",
}
SETTING_UP = """
import ctypes, warnings
from io import BytesIO
import cv2
import numpy as np
import skimage as sk
import skimage.color, skimage.util
from PIL import Image as PILImage
from scipy.ndimage import map_coordinates, zoom as scizoom
from skimage.filters import gaussian
from wand.api import library as wandlibrary
from wand.image import Image as WandImage
"""


def functions(checkout: Path, program: str) -> dict:
    """Return the program's functions, with names that newer libraries have renamed."""
    text = (checkout / "ImageNet-C" / "create_c" / f"{program}.py").read_text()
    text = text[text.index("def disk(") : text.index("# /////////////// End Distortions")]
    for old, new in (
        ("np.float_", "np.float64"),
        ("multichannel=True", "channel_axis=-1"),
        ("np.fromstring", "np.frombuffer"),
    ):
        text = text.replace(old, new)
    names: dict = {}
    exec(SETTING_UP + text, names)  # noqa: S102 - the published program, in an environment of its own
    return names


def main(checkout: Path) -> None:
    from tests.golden.corruption_scene import scene, shown

    recorded = {}
    for side, program in PROGRAMS.items():
        own, image = functions(checkout, program), scene(side)
        recorded[f"{side}/scene"] = shown(np.asarray(image))
        for name, function in RECORDED.items():
            with mock.patch("numpy.random.uniform", return_value=30.0):
                outputs = [np.asarray(own[function](image, severity), np.float32) for severity in range(1, 6)]
            recorded[f"{side}/{name}"] = np.stack([shown(output) for output in outputs])
    np.savez_compressed(OUT, **recorded)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
