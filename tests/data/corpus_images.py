"""Image files made in memory: good ones of every kind that is read, and broken and hostile ones."""

import io
import struct
import zlib

import numpy as np
from PIL import Image, TiffImagePlugin

from tests.golden.preprocessing_images import photo

HEIGHT, WIDTH = 23, 34


def saved(image: Image.Image, form: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def exif(orientation: int) -> bytes:
    made = Image.Exif()
    made[0x0112] = orientation
    return made.tobytes()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *, depth: int = 8, colour: int = 2, data: bytes = b"", before: bytes = b"") -> bytes:
    """A PNG file with any header; `data` are its filtered and compressed rows."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), before, chunk(b"IDAT", data), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def compressed_zeros(count: int) -> bytes:
    """What zlib makes of zeros, without going through all of them: the same block again and again."""
    block = 1_000_000
    packer = zlib.compressobj(9)
    start = packer.compress(bytes(count % block)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = struct.pack(">HH", count % 65521, 1)
    return start + again * (count // block) + b"\x03\x00" + checksum


def bomb(width: int, height: int) -> bytes:
    """A PNG file of few bytes with this many black pixels."""
    return png(width, height, data=compressed_zeros((3 * width + 1) * height))


def tiff(entries: list[tuple[int, int, int, int]], *, following: int = 0, tail: bytes = b"") -> bytes:
    """A little-endian TIFF file with one directory of (tag, type, count, value), at 8, and then the tail."""
    directory = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + directory + struct.pack("<I", following) + tail


def grey_tiff(width: int, height: int, *, strip: int = 0, length: int = 16, rows: int | None = None) -> bytes:
    """A grey TIFF file of one strip at an offset and of a length that may be lies."""
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 1, 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1),
        (273, 4, 1, strip),
        (277, 3, 1, 1),
        (278, 4, 1, rows or height),
        (279, 4, 1, length),
    ]
    return tiff(entries, tail=bytes(16))


def ycck(rgb: tuple[int, int, int]) -> bytes:
    """A JPEG file of one colour as Photoshop writes CMYK: luma and chroma of cyan, magenta, yellow; inverted black."""
    ink = tuple(255 - value for value in rgb)
    y, cb, cr = Image.new("RGB", (1, 1), ink).convert("YCbCr").getpixel((0, 0))
    stored = Image.new("CMYK", (16, 16), (255 - y, 255 - cb, 255 - cr, 0))  # Pillow inverts what it writes
    encoded = saved(stored, "JPEG", quality=100)
    at = encoded.index(b"Adobe") + 11
    assert encoded[at] == 0  # no transform
    return encoded[:at] + b"\x02" + encoded[at + 1 :]


def sixteen_bit_colours() -> tuple[bytes, np.ndarray]:
    """A PNG file of 16 bits for each colour, and its values."""
    values = (photo(HEIGHT, WIDTH).astype(np.uint16) << 8) | photo(WIDTH, HEIGHT).transpose(1, 0, 2)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    return png(WIDTH, HEIGHT, depth=16, data=zlib.compress(rows)), values


def good() -> dict[str, bytes]:
    """A file of every kind that is read, all of the same size."""
    colours = Image.fromarray(photo(HEIGHT, WIDTH))
    grey, palette = colours.convert("L"), colours.quantize(16)
    alpha = Image.fromarray(photo(HEIGHT, WIDTH, 4))
    sixteen = Image.fromarray(photo(HEIGHT, WIDTH, 1)[:, :, 0].astype(np.uint16) * 251)
    frames = [colours.rotate(90 * turn) for turn in range(1, 3)]
    files = {
        "jpeg": saved(colours, "JPEG"),
        "jpeg 4:4:4": saved(colours, "JPEG", subsampling=0, quality=95),
        "jpeg 4:2:2": saved(colours, "JPEG", subsampling=1),
        "jpeg progressive": saved(colours, "JPEG", progressive=True, exif=exif(6)),
        "jpeg grey": saved(grey, "JPEG"),
        "jpeg rgb": saved(colours, "JPEG", keep_rgb=True),
        "jpeg cmyk": saved(colours.convert("CMYK"), "JPEG"),
        "jpeg restarts": saved(colours, "JPEG", restart_marker_blocks=2),
        "png": saved(colours, "PNG"),
        "png alpha": saved(alpha, "PNG", exif=exif(5)),
        "png grey": saved(grey, "PNG"),
        "png grey alpha": saved(alpha.convert("LA"), "PNG"),
        "png grey clear": saved(grey, "PNG", transparency=7),
        "png colours clear": saved(colours, "PNG", transparency=tuple(photo(HEIGHT, WIDTH)[3, 4].tolist())),
        "png palette": saved(palette, "PNG"),
        "png palette clear": saved(palette, "PNG", transparency=3),
        "png palette alpha": saved(palette, "PNG", transparency=bytes(range(0, 160, 10))),
        "png bit": saved(grey.convert("1"), "PNG"),
        "png 16 bits": saved(sixteen, "PNG"),
        "png 16 bits colours": sixteen_bit_colours()[0],
        "apng": saved(colours, "PNG", save_all=True, append_images=frames),
        "webp": saved(colours, "WEBP", lossless=True),
        "webp lossy": saved(colours, "WEBP", quality=80, exif=exif(3)),
        "webp alpha": saved(alpha, "WEBP", lossless=True, exact=True),
        "webp animated": saved(colours, "WEBP", lossless=True, save_all=True, append_images=frames),
        "bmp": saved(colours, "BMP"),
        "bmp grey": saved(grey, "BMP"),
        "bmp palette": saved(palette, "BMP"),
        "bmp bit": saved(grey.convert("1"), "BMP"),
        "gif": saved(palette, "GIF"),
        "gif clear": saved(palette, "GIF", transparency=2),
        "gif animated": saved(palette, "GIF", save_all=True, append_images=frames),
        "tiff": saved(colours, "TIFF"),
        "tiff big": saved(colours, "TIFF", big_tiff=True),
        "tiff alpha": saved(alpha, "TIFF"),
        "tiff grey": saved(grey, "TIFF", tiffinfo=turned(7)),
        "tiff bit": saved(grey.convert("1"), "TIFF", compression="group4"),
        "tiff palette": saved(palette, "TIFF"),
        "tiff cmyk": saved(colours.convert("CMYK"), "TIFF"),
        "tiff ycbcr": saved(colours.convert("YCbCr"), "TIFF"),
        "tiff lab": saved(colours.convert("LAB"), "TIFF"),
        "tiff 16 bits": saved(sixteen, "TIFF"),
        "tiff whole numbers": saved(sixteen.convert("I"), "TIFF"),
    }
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        files[f"tiff {compression}"] = saved(colours, "TIFF", compression=compression)
    return files


def turned(orientation: int) -> TiffImagePlugin.ImageFileDirectory_v2:
    info = TiffImagePlugin.ImageFileDirectory_v2()
    info[0x0112] = orientation
    return info


def bad() -> dict[str, bytes]:
    """Files that must be refused, each for a reason of its own."""
    files = good()
    jpeg, whole = files["jpeg"], files["png"]
    size = jpeg.index(b"\xff\xc0") + 5
    return {
        "empty": b"",
        "one byte": b"\xff",
        "text": b"this is not an image, whatever its name says\n" * 9,
        "html": b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
        "svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/passwd"/></svg>',
        "pdf": b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n",
        "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n",
        "psd": b"8BPS" + struct.pack(">H6xHIIHH", 1, 3, 9, 9, 8, 3) + bytes(99),
        "icns": saved(Image.new("RGBA", (16, 16)), "ICNS"),
        "ico": saved(Image.new("RGBA", (16, 16)), "ICO"),
        "ppm": saved(Image.new("RGB", (9, 9)), "PPM"),
        "tga": saved(Image.new("RGB", (9, 9)), "TGA"),
        "jpeg 2000": saved(Image.new("RGB", (9, 9)), "JPEG2000"),
        "avif": b"\0\0\0\x20ftypavif\0\0\0\0avifmif1miafMA1B" + bytes(99),
        "zip": b"PK\x03\x04" + bytes(99),
        "riff that is sound": b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + bytes(28),
        "jpeg header alone": jpeg[: jpeg.index(b"\xff\xda")],
        "jpeg of no size": jpeg[:size] + bytes(4) + jpeg[size + 4 :],
        "jpeg of 65500x65500": jpeg[:size] + struct.pack(">HH", 65500, 65500) + jpeg[size + 4 :],
        "jpeg of 12 bits": jpeg[: size - 1] + b"\x0c" + jpeg[size:],
        "png header alone": whole[:33],
        "png of no size": png(0, 0),
        "png of no rows": png(9, 9),
        "png of 2^31 sides": png(2**31 - 1, 2**31 - 1),
        "png of an unknown kind": png(9, 9, depth=3, colour=5, data=zlib.compress(bytes(999))),
        "png with a wrong checksum": whole[:29] + b"\0\0\0\0" + whole[33:],
        "png bomb": bomb(10_000, 10_000),
        "png text bomb": png(
            2, 2, data=zlib.compress(bytes(14)), before=chunk(b"zTXt", b"a\0\0" + compressed_zeros(99_000_000))
        ),
        "png whose animation lies": png(2, 2, before=chunk(b"acTL", bytes(8))),
        "gif of no frame": files["gif"][:13] + b";",
        "gif of a broken frame": files["gif"][:-60] + b"\x04\xff\xff\xff\xff" * 12,
        "gif of 65535x65535": files["gif"][:6] + b"\xff\xff\xff\xff" + files["gif"][10:],
        "bmp of no size": files["bmp"][:18] + bytes(8) + files["bmp"][26:],
        "bmp of a negative width": files["bmp"][:18] + struct.pack("<i", -9) + files["bmp"][22:],
        "bmp of 2^31 sides": files["bmp"][:18] + struct.pack("<ii", 2**31 - 1, 2**31 - 1) + files["bmp"][26:],
        "webp of 2^24 sides": b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + b"\xff" * 6,
        "webp header alone": files["webp"][:20],
        "tiff of no directory": b"II*\0\xff\xff\xff\x7f",
        "tiff of an empty directory": tiff([]),
        "tiff whose directory is itself": tiff([], following=8),
        "tiff of a strip outside": grey_tiff(4, 4, strip=99_999),
        "tiff of too few strips": grey_tiff(4, 8, strip=122, rows=4),
        "tiff of a huge strip": grey_tiff(9000, 9000, strip=122, length=2**32 - 1),
        "tiff of 2^32 sides": grey_tiff(2**32 - 1, 2**32 - 1, strip=122),
        "tiff of huge counts": tiff([(256, 4, 2**32 - 1, 8), (257, 4, 2**32 - 1, 8), (258, 3, 2**32 - 1, 8)]),
        "tiff of fractions": saved(Image.new("F", (9, 9), 0.5), "TIFF"),
        "tiff of numbers past 16 bits": saved(Image.new("I", (9, 9), 70_000), "TIFF"),
    }
