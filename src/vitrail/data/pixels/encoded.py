"""Image files as arrays: the one decoder of training, evaluation, prediction and serving; imports no torch.

JPEG, PNG, WEBP, BMP, GIF (its first frame) and TIFF, by their first bytes, never by a name. The header is read first:
an image of more than `max_pixels` (by default that of `base/limits.py`) is refused before a pixel of it is
decoded, and so is a JPEG file that is far more work than its size. With the extra `fast`, JPEG files are
decoded by simplejpeg, with the same pixels; whatever it refuses, Pillow decides.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from vitrail.base.errors import ImageError, ImageFormatError, ImageSizeError
from vitrail.base.limits import IMAGE_PIXELS, JPEG_WORK
from vitrail.data.pixels.colours import rgb
from vitrail.data.pixels.jpeg import most_scans
from vitrail.data.pixels.orientation import PixelArray, orientation_of, turns_aside, upright
from vitrail.data.pixels.quiet import quiet_pillow

try:
    import simplejpeg  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError:
    simplejpeg = None


class _Jpeg(JpegImageFile):
    """A JPEG file whose EXIF nobody reads for its resolution, which takes time and warns."""

    def _read_dpi_from_exif(self) -> None:
        pass


_READERS: dict[str, type[ImageFile]] = {
    "JPEG": _Jpeg,
    "PNG": PngImageFile,
    "WEBP": WebPImageFile,
    "BMP": BmpImageFile,
    "GIF": GifImageFile,
    "TIFF": TiffImageFile,
}
_MAGIC = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
}


_MOST_LAYERS = 16
"""Times that the strips of a TIFF file may cover it: once for each channel that is stored apart."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """The header of an image file."""

    format: str
    """JPEG, PNG, WEBP, BMP, GIF or TIFF."""
    width: int
    """Pixels from left to right, upright."""
    height: int
    """Pixels from top to bottom, upright."""
    mode: str
    """Pillow's word for the colours: L, RGB, P, CMYK, I;16, ..."""
    orientation: int
    """EXIF's orientation, 1 to 8; 1 is upright."""


def decode_array(encoded: bytes, *, max_pixels: int | None = None) -> PixelArray:
    """Turn an image file into upright red, green and blue: height, width, channel.

    Whatever is wrong with the file, the answer is one `ImageError`.
    """
    with _refusing(), quiet_pillow():
        image = _READERS[_format(encoded)](io.BytesIO(encoded))
        _check_size(image, max_pixels)
        _check_work(encoded, image)
        fast = _fast(encoded, image)
        return _loaded(image) if fast is None else fast


def array_of_pil(image: Image.Image, *, max_pixels: int | None = None) -> PixelArray:
    """Turn an image of Pillow into an array by the same rules as a file."""
    with _refusing(), quiet_pillow():
        _check_size(image, max_pixels)
        return _loaded(image)


def probe(source: bytes | Path) -> Header:
    """Read the header of an image file, and nothing else of it."""
    with _refusing(), quiet_pillow(), io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        form = _format(file.read(16))
        file.seek(0)
        image = _READERS[form](file)
        orientation = _orientation(image)
        width, height = image.size
        if turns_aside(orientation) and form != "TIFF":  # there Pillow has swapped them already
            width, height = height, width
        return Header(format=form, width=width, height=height, mode=image.mode, orientation=orientation)


def _format(encoded: bytes) -> str:
    if not encoded:
        raise ImageFormatError("the file is empty.")
    if encoded[:4] == b"RIFF" and encoded[8:12] == b"WEBP":
        return "WEBP"
    for magic, form in _MAGIC.items():
        if encoded.startswith(magic):
            return form
    raise ImageFormatError(f"it is not a JPEG, PNG, WEBP, BMP, GIF or TIFF image: it begins with {encoded[:8]!r}.")


def _check_size(image: Image.Image, max_pixels: int | None) -> None:
    width, height = image.size
    most = IMAGE_PIXELS.value if max_pixels is None else max_pixels
    if width * height > most:
        raise ImageSizeError(
            f"it has {width}x{height} pixels, more than the {most:,} that are decoded; shrink it first, or allow more "
            f"by the environment variable {IMAGE_PIXELS.variable}."
        )


def _check_work(encoded: bytes, image: ImageFile) -> None:
    """Refuse a JPEG file with so many scans that decoding would take minutes: each covers the whole image."""
    if isinstance(image, JpegImageFile):
        JPEG_WORK.check(most_scans(encoded) * image.width * image.height, "it", ImageSizeError)


def _loaded(image: Image.Image) -> PixelArray:
    """Decode with Pillow; it turns TIFF files upright by itself."""
    if isinstance(image, TiffImageFile):
        _check_strips(image)
        image.load()
        return rgb(image)
    image.load()
    return upright(rgb(image), _orientation(image))


def _check_strips(image: TiffImageFile) -> None:
    """Refuse a TIFF file that lists too few strips or tiles for its size; Pillow would leave the rest black."""
    boxes = [tile.extents for tile in image.tile if tile.extents]
    covered = sum((right - left) * (bottom - top) for left, top, right, bottom in boxes)
    if boxes and covered < image.width * image.height:  # none are left in an image that has been loaded already
        raise ImageError("it is truncated: strips of the image are missing; make it again, or remove it.")
    if covered > _MOST_LAYERS * image.width * image.height:
        raise ImageError("it lists the strips of the image over and over; make it again, or remove it.")


def _orientation(image: Image.Image) -> int:
    if isinstance(image, TiffImageFile):
        orientation = image.tag_v2.get(0x0112, 1)
        return orientation if orientation in range(1, 9) else 1
    return orientation_of(image.info)


def _fast(encoded: bytes, image: ImageFile) -> PixelArray | None:
    """Decode grey and three-channel JPEG files with simplejpeg if it is there and finds nothing to complain about."""
    if simplejpeg is None or not isinstance(image, JpegImageFile) or image.mode not in ("L", "RGB"):
        return None
    try:
        pixels = simplejpeg.decode_jpeg(encoded, "RGB")
    except ValueError:
        return None
    if pixels.shape[1::-1] != image.size:
        return None
    return upright(pixels, _orientation(image))


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn any error of a reader into one sentence."""
    try:
        yield
    except ImageError:
        raise
    except (MemoryError, Image.DecompressionBombError):
        raise ImageSizeError("it has more pixels than there is memory for; shrink it first.") from None
    except Exception as error:  # Pillow's readers raise a dozen kinds for broken files
        if isinstance(error, OSError) and error.errno:
            raise ImageError(f"it could not be read: {error.strerror}.") from None
        reason = " ".join(str(error).split())
        reason = f" ({reason})" if reason.isprintable() and 0 < len(reason) <= 80 else ""
        raise ImageError(f"it is broken or truncated{reason}; make it again, or remove it.") from None
