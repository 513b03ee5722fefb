"""What an image may cost: its scans are counted, its strips come once, and a large one takes its share of memory."""

import io
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vitrail.base.errors import ImageError
from vitrail.base.limits import IMAGE_PIXELS
from vitrail.data.pixels import colours
from vitrail.data.pixels.colours import rgb
from vitrail.data.pixels.decode import decode, to_channels
from vitrail.data.pixels.jpeg import most_scans


def photo(**options) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "JPEG", **options)
    return file.getvalue()


def with_scans(encoded: bytes, count: int) -> bytes:
    """A progressive file with its last scan repeated until there are so many."""
    last, end = encoded.rindex(b"\xff\xda"), encoded.rindex(b"\xff\xd9")
    return encoded[:end] + encoded[last:end] * (count - encoded.count(b"\xff\xda")) + encoded[end:]


def test_scans_are_counted_and_a_sequential_photo_has_one() -> None:
    assert most_scans(photo()) == 1
    assert most_scans(photo(exif=b"Exif\0\0" + photo())) == 1  # the thumbnail has a scan of its own
    assert most_scans(photo(progressive=True)) == 10  # what libjpeg writes by default
    assert most_scans(with_scans(photo(progressive=True), 4000)) == 4000


@pytest.mark.parametrize("before", [b"\xff\x01", b"\xff\xff", b"x", b"\xff\xd0"])
def test_what_a_decoder_passes_over_does_not_hide_scans(before) -> None:
    encoded = with_scans(photo(progressive=True), 30)
    hidden = encoded[:2] + before + photo()[2:600] + encoded[2:]  # looks sequential to who takes `before` for a segment
    assert most_scans(hidden) >= 30


def test_a_photo_of_thousands_of_scans_is_refused_before_it_is_decoded(monkeypatch) -> None:
    good = photo(progressive=True)
    monkeypatch.setenv("VITRAIL_LIMIT_JPEG_WORK", str(20 * 40 * 50))
    decode(with_scans(good, 20))
    with pytest.raises(ImageError, match=r"it has 42,000 pixels in all its scans, .* VITRAIL_LIMIT_JPEG_WORK"):
        decode(with_scans(good, 21))


def tiff(strips: int) -> bytes:
    """An uncompressed grey TIFF of 8x8 whose one strip of 4 rows is listed over and over."""
    entries = [
        (256, 4, 1, 8),
        (257, 4, 1, 8),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (277, 3, 1, 1),
        (278, 4, 1, 4),
    ]
    after = 8 + 2 + 12 * 9 + 4
    entries += [(273, 4, strips, after), (279, 4, strips, after + 4 * strips)]
    directory = struct.pack("<H", 9) + b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries)) + bytes(4)
    lists = struct.pack("<I", after + 8 * strips) * strips + struct.pack("<I", 32) * strips
    return b"II*\0" + struct.pack("<I", 8) + directory + lists + bytes(range(32))


def test_strips_that_are_listed_over_and_over_are_refused() -> None:
    assert decode(tiff(2)).shape == (3, 8, 8)
    with pytest.raises(ImageError, match="lists the strips of the image over and over"):
        decode(tiff(50_000))


@pytest.mark.parametrize(
    "mode", ["RGB", "L", "P", "RGBA", "LA", "La", "RGBa", "PA", "CMYK", "1", "I;16", "YCbCr", "LAB"]
)
@pytest.mark.parametrize("piece", [64, 7])
def test_pixels_are_the_same_converted_in_pieces(mode, piece, monkeypatch) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (13, 11, 4), dtype=np.uint8)
    image = Image.fromarray(noise)
    if mode == "I;16":
        image = Image.fromarray(noise[:, :, 0].astype(np.uint16) * 257)
    elif mode == "PA":
        image = image.convert("RGB").convert("P").convert("PA")
    elif mode in ("La", "RGBa"):
        image = image.convert(f"{mode[:-1]}A").convert(mode)
    elif mode != "RGBA":
        image = image.convert("RGB").convert(mode)
    whole = rgb(image)
    grey = to_channels(torch.from_numpy(whole).permute(2, 0, 1), 1)
    monkeypatch.setattr(colours, "_PIECE", piece)
    assert np.array_equal(rgb(image), whole)
    assert torch.equal(to_channels(torch.from_numpy(whole).permute(2, 0, 1), 1), grey)


PEAKS = """
import os, sys
from pathlib import Path
from vitrail.data.pixels.decode import decode, to_channels

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of the imports
        before = memory("VmRSS")
        to_channels(decode(open(path, "rb").read()), 1)
        print(memory("VmHWM") - before, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, path
"""
SIDE = 4000
BYTES_A_PIXEL = 18


def test_a_large_image_takes_no_more_memory_than_documented(tmp_path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    kinds = {
        "x.gif": ("P", {"transparency": 0}),
        "x.png": ("RGBA", {}),
        "grey.png": ("LA", {}),
        "deep.png": ("I;16", {}),
        "x.webp": ("RGBA", {"lossless": True, "quality": 0, "method": 0}),
        "x.jpg": ("RGB", {"exif": turned.tobytes()}),
        "scans.jpg": ("RGB", {"progressive": True}),
        "inks.jpg": ("CMYK", {}),
        "x.tif": ("RGB", {"compression": "tiff_lzw"}),
        "x.bmp": ("RGB", {}),
    }
    for name, (mode, options) in kinds.items():
        Image.new(mode, (SIDE, SIDE)).save(tmp_path / name, **options)
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, *(str(tmp_path / name) for name in kinds)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    peaks = {name: 1024 * int(line) / SIDE**2 for name, line in zip(kinds, done.stdout.split(), strict=True)}
    assert 12 < max(peaks.values()) < BYTES_A_PIXEL, peaks
    text = (Path(__file__).parents[3] / "docs" / "data.md").read_text()
    assert f"at most {BYTES_A_PIXEL * IMAGE_PIXELS.default / 1e9:.1f} GB while it is decoded" in text
