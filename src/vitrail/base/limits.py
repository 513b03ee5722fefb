"""How much is believed of files that come from elsewhere: every bound of every reader, in one table.

What claims more is refused before memory or time is spent on it, in a sentence that names the bound and the environment
variable that sets another, such as `VITRAIL_LIMIT_IMAGE_PIXELS=200000000`.
"""

import os
from dataclasses import dataclass

from vitrail.base.errors import ConfigError, InputError, VitrailError
from vitrail.base.readable import in_bytes

PREFIX = "VITRAIL_LIMIT_"
_LARGEST = 2**62


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The largest number of something that is read."""

    name: str
    """Its name; the environment variable is the same in capitals, after `VITRAIL_LIMIT_`."""
    default: int
    """The bound where the environment sets none."""
    unit: str
    """What is counted."""
    reason: str
    """Whom the bound leaves alone, or what it keeps away."""

    @property
    def variable(self) -> str:
        """The environment variable that sets another bound."""
        return PREFIX + self.name.upper()

    @property
    def value(self) -> int:
        """The bound that holds now."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) <= _LARGEST):
            raise ConfigError(
                f"the environment variable {self.variable} is {text[:40]!r}, but must be a whole number from 1 to "
                f"{_LARGEST}, such as {self.default}."
            )
        return int(text)

    def check(self, number: int, subject: str, error: type[VitrailError] = InputError) -> None:
        """Refuse a number above the bound; `subject` begins the sentence."""
        if number > self.value:
            raise error(
                f"{subject} has {number:,} {self.unit}, more than the {self.value:,} that are read; "
                f"if that is right, allow more by the environment variable {self.variable}."
            )


IMAGE_BYTES = Limit(
    name="image_bytes", default=2**30, unit="bytes", reason="one encoded image; 89 million pixels of 64 bits are less"
)
IMAGE_PIXELS = Limit(
    name="image_pixels", default=89_478_485, unit="pixels", reason="one decoded image; Pillow warns from there on"
)
JPEG_WORK = Limit(
    name="jpeg_work",
    default=2 * 10**9,
    unit="pixels in all its scans",
    reason="a progressive JPEG has about 10 scans; thousands would take an hour to decode",
)
INPUT_PIXELS = Limit(
    name="input_pixels", default=4096 * 4096, unit="pixels", reason="what preprocessing makes of one image"
)
TOKENS = Limit(name="tokens", default=2**20, unit="tokens", reason="the sequence of one image in a file's config")
TEXT_BYTES = Limit(
    name="text_bytes", default=32 * 2**20, unit="bytes", reason="class names, class maps, settings, published lists"
)
LIST_BYTES = Limit(name="list_bytes", default=2**30, unit="bytes", reason="a list of 17 million paths of 60 letters")
LINE_BYTES = Limit(name="line_bytes", default=2**20, unit="bytes", reason="one line of a list or a manifest")
HEADER_BYTES = Limit(
    name="header_bytes",
    default=16 * 2**20,
    unit="bytes",
    reason="the header of a safetensors file; one with 21,843 class names takes 1 MB",
)
ENTRIES = Limit(name="entries", default=100_000, unit="entries", reason="the files in one .npz or torch file")
ELEMENTS = Limit(
    name="elements",
    default=200_000,
    unit="elements",
    reason="the parts of a MATLAB file; the classes of ImageNet's kit take 75,000",
)
UNPACKED_BYTES = Limit(
    name="unpacked_bytes", default=256 * 2**20, unit="bytes", reason="what any compressed file may unpack to"
)
ARRAY_GROWTH = Limit(
    name="array_growth",
    default=100,
    unit="times its size",
    reason="arrays and tables of images beyond that; drawings compress well",
)
WEIGHTS_GROWTH = Limit(
    name="weights_growth", default=8, unit="times its size", reason="weights, of which only a head of zeros compresses"
)
DOWNLOAD_BYTES = Limit(
    name="download_bytes",
    default=64 * 2**30,
    unit="bytes",
    reason="one file that `vitrail pull` gets; the largest has 27 GB",
)

LIMITS = (
    *(IMAGE_BYTES, IMAGE_PIXELS, JPEG_WORK, INPUT_PIXELS, TOKENS),
    *(TEXT_BYTES, LIST_BYTES, LINE_BYTES, HEADER_BYTES, ENTRIES, ELEMENTS),
    *(UNPACKED_BYTES, ARRAY_GROWTH, WEIGHTS_GROWTH, DOWNLOAD_BYTES),
)
"""Every bound, for the documentation."""


def most_unpacked(packed: int, growth: Limit) -> int:
    """Return how many bytes a file of `packed` bytes may unpack to."""
    return max(UNPACKED_BYTES.value, growth.value * packed)


def check_unpacked(subject: str, packed: int, unpacked: int, growth: Limit, error: type[VitrailError]) -> None:
    """Refuse a file of `packed` bytes that would unpack to far more than it is."""
    if unpacked > most_unpacked(packed, growth):
        raise error(
            f"{subject} has {in_bytes(packed)} and would unpack to {in_bytes(unpacked)}, more than {growth.value} "
            f"times as much; store it without compression if it is yours, or allow more by the environment variable "
            f"{growth.variable}."
        )
