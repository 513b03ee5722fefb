"""Small files of every kind that a source reads."""

import io
import struct
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image


def picture(seed: int = 0, *, size: tuple[int, int] = (6, 5), kind: str = "PNG") -> bytes:
    """An encoded image whose colour depends on the seed."""
    file = io.BytesIO()
    Image.new("RGB", size, (seed % 256, 7 * seed % 256, 100)).save(file, kind)
    return file.getvalue()


def tree(root: Path, names: list[str]) -> Path:
    """Files by relative path: images where the extension says so, text elsewhere."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"text" if path.suffix in (".txt", ".md", "") else picture(number))
    return root


def tar(path: Path, files: dict[str, bytes], *, form: int = tarfile.USTAR_FORMAT) -> Path:
    """A tar of plain files, written by Python's own library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def header(
    name: str = "x.jpg", *, size: int = 0, kind: bytes = b"0", prefix: str = "", magic: bytes = b"ustar\x0000"
) -> bytes:
    """The header of a tar member, written out by hand."""
    block = bytearray(512)
    block[: len(name)] = name.encode()
    block[100:108] = b"0000644\0"
    block[124:136] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[156:157] = kind
    block[257:265] = magic
    block[345 : 345 + len(prefix)] = prefix.encode()
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def idx(path: Path, array: np.ndarray) -> Path:
    """An idx file of bytes."""
    content = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    if path.suffix == ".gz":
        import gzip

        content = gzip.compress(content)
    path.write_bytes(content)
    return path
