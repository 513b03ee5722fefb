"""The 15 common corruptions at 5 severities (Hendrycks and Dietterich, 2019).

An image takes the parameters that were published for the size nearest to its own, see `published.py`. What differs from
the published images: frost is drawn, draws are ours, values are rounded to whole levels once and not stored as JPEG.
"""

from collections.abc import Callable, Mapping

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.numbers import check_whole
from vitrail.base.shapes import Pixels
from vitrail.data.stress import blur, digital, noise, weather
from vitrail.data.stress.draws import Draws
from vitrail.data.stress.planes import Planes, pixels_of_planes, planes_of
from vitrail.data.stress.published import NAMES, SEVERITIES, CorruptionName, published_for

FUNCTIONS: Mapping[CorruptionName, Callable[..., Planes]] = {
    "gaussian-noise": noise.gaussian_noise,
    "shot-noise": noise.shot_noise,
    "impulse-noise": noise.impulse_noise,
    "defocus-blur": blur.defocus_blur,
    "glass-blur": blur.glass_blur,
    "motion-blur": blur.motion_blur,
    "zoom-blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": weather.brightness,
    "contrast": digital.contrast,
    "elastic": digital.elastic,
    "pixelate": digital.pixelate,
    "jpeg": digital.jpeg,
}


def corrupt(pixels: Pixels, name: CorruptionName, severity: int, draws: Draws) -> Pixels:
    """Corrupt one image; severities go from 1 to 5."""
    check_severity(severity)
    if name not in FUNCTIONS:
        raise ConfigError(f"there is no corruption {name!r}; there are {', '.join(NAMES)}.{did_you_mean(name, NAMES)}")
    arguments = published_for((pixels.shape[1], pixels.shape[2])).parameters[name][severity - 1]
    return pixels_of_planes(FUNCTIONS[name](planes_of(pixels), draws, *arguments))


def check_severity(severity: int) -> int:
    """Refuse a severity that was not published."""
    return check_whole("severity", severity, least=SEVERITIES[0], most=SEVERITIES[-1])
