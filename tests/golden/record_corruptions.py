"""Records what the published program of ImageNet-C makes of a made scene; run it outside of the project's environment.

    python tests/golden/record_corruptions.py CHECKOUT

CHECKOUT is github.com/hendrycks/robustness (Apache-2.0), of which nothing is copied here: its functions are called, and
a few pixels of their outputs are stored. It needs numpy, scipy, scikit-image, opencv-python-headless, wand and Pillow.
numpy's global generator is seeded before every call, so that a test can draw the same numbers again. Photos of frost
are replaced by white: only how they are mixed in is recorded.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

OUT = Path(__file__).parent / "corruptions.npz"
PROGRAMS = {224: "make_imagenet_c", 64: "make_tinyimagenet_c", 32: "make_cifar_c"}
RECORDED = {
    "gaussian-noise": "gaussian_noise",
    "shot-noise": "shot_noise",
    "impulse-noise": "impulse_noise",
    "defocus-blur": "defocus_blur",
    "glass-blur": "glass_blur",
    "motion-blur": "motion_blur",
    "zoom-blur": "zoom_blur",
    "snow": "snow",
    "frost": "frost",
    "fog": "fog",
    "brightness": "brightness",
    "contrast": "contrast",
    "elastic": "elastic_transform",
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


def corrupted(function: Callable, image: Image.Image, severity: int, white: np.ndarray, seed: int) -> np.ndarray:
    """Return one output, all its draws from one seed; scikit-image has a generator of its own for impulse noise."""
    np.random.seed(seed)  # noqa: NPY002 - the published program draws from the global generator
    with (
        mock.patch("cv2.imread", return_value=white),
        mock.patch("numpy.random.default_rng", return_value=np.random.RandomState(seed)),
    ):
        return np.asarray(function(image, severity), np.float32)


def main(checkout: Path) -> None:
    from tests.golden.corruption_scene import SEED, scene, shown

    white = np.full((1200, 1200, 3), 255, np.uint8)
    recorded = {}
    for side, program in PROGRAMS.items():
        own, image = functions(checkout, program), scene(side)
        recorded[f"{side}/scene"] = shown(np.asarray(image))
        for name, function in RECORDED.items():
            outputs = [corrupted(own[function], image, severity, white, SEED) for severity in range(1, 6)]
            recorded[f"{side}/{name}"] = np.stack([shown(output) for output in outputs])
    np.savez_compressed(OUT, **recorded)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
