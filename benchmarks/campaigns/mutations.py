"""Changes to files that keep their structure: fields get extremes, checksums and digests are made right again.

Bytes flipped anywhere are mostly found by the first checksum; what is interesting lies behind it. A mutation takes a
file apart as its format does, changes one part, and puts it together so that a reader goes on to that part.
"""

import gzip
import hashlib
import io
import json
import random
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

Chance = random.Random
Mutate = Callable[[bytes, Chance], bytes]

WHOLE = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1]
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 1e9, 10**6, 2**31, 2**53, 2**63, 10**30, -(10**18), 0.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), "", " ", "x", "x" * 5000, "\0", "\ud800", "../../etc/passwd", "é", "1", "1e9", "nan"),
    *([], {}, [[]], [0], [1, 2], [10**6, 10**6], [30000, 30000], ["a", "b"], [None], {"a": 1}, [[[[[[]]]]]]),
]


CELLS = (b"", b'"', b"'=1+1", b"../x.png", b"/etc/passwd", b"\0", b"\xff", b"9" * 30, b"x" * 300, b"-1", b"\r")
SIZES = (b"\x80" + b"\xff" * 11, b"77777777777\0", b"-1\0".ljust(12), b"\xff" * 12, b"00000001000\0")
TYPES = (b"|O", b"<f8", b"|u1", b"<U0", b"<U9", b"|V2", b"|S4", b">f4", b"<M8[s]", b"x", b"<f16")
OPERATIONS = (
    *(b"cos\nsystem\n", b"ctorch\nload\n", b"cbuiltins\nbytearray\n", b"R", b"b", b"0", b"2", b"(", b"t", b"}", b"]"),
    *(
        b"\x8a\x05\x00\x00\x00\x00\x7f\x85R",
        b"ctorch\nFloatTensor\nJ\x00\x00\x00\x7f\x85R",
        b"...",
        b"\x95" + b"\xff" * 8,
    ),
    *(b"X\xff\xff\xff\x7f", b"j\xff\xff\xff\xff", b"J\xff\xff\xff\x7f", b"\x8b\xff\xff\xff\x7f"),
)
"""Of a pickle."""


def raw(data: bytes, chance: Chance) -> bytes:
    """Cut, flip, overwrite, repeat, insert, erase or swap parts, more often near the beginning or the end."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = _place(len(changed), chance)
        match chance.randrange(9):
            case 0:
                changed[at : at + 1] = bytes(byte ^ 1 << chance.randrange(8) for byte in changed[at : at + 1])
            case 1:
                del changed[at:]
            case 2:
                changed[at : at + 1] = bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))])
            case 3:
                changed[at : at + 4] = integer(4, chance)
            case 4:
                changed[at : at + 8] = integer(8, chance)
            case 5:
                changed[at : at + 2] = integer(2, chance)
            case 6:
                changed[at:at] = chance.randbytes(chance.choice((1, 2, 4, 16, 300)))
            case 7:
                changed[at:at] = changed[at : at + chance.choice((1, 4, 64, 1000))] * chance.choice((1, 1, 20))
            case 8:
                del changed[at : at + chance.choice((1, 2, 4, 8, 100))]
    return bytes(changed)


def _place(length: int, chance: Chance) -> int:
    near = min(length, chance.choice((8, 64, 512)))
    anywhere, ends = chance.randrange(length + 1), chance.randrange(near + 1)
    return chance.choice((anywhere, ends, length - ends))


def integer(size: int, chance: Chance) -> bytes:
    """A number of some bytes that readers find hard, in either order."""
    return (chance.choice(WHOLE) % 256**size).to_bytes(size, chance.choice(("little", "big")))


def tree(value: Any, chance: Chance) -> Any:
    """Change one value of a tree of JSON: another value, one less, one more, one twice."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return chance.choice(VALUES)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        match chance.randrange(5):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, value[at]]
            case 2:
                return value * chance.choice((2, 100))
        return [*value[:at], tree(value[at], chance), *value[at + 1 :]]
    name = chance.choice(list(value))
    match chance.randrange(6):
        case 0:
            return {key: inner for key, inner in value.items() if key != name}
        case 1:
            return value | {chance.choice(("", "x", name.upper(), "kind", "__class__")): chance.choice(VALUES)}
    return value | {name: tree(value[name], chance)}


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode(errors="surrogatepass")


def json_file(data: bytes, chance: Chance) -> bytes:
    """Change a value of a JSON file; now and then nest it deep, or give it a number without end."""
    match chance.randrange(12):
        case 0:
            return b"[" * chance.choice((10, 1000, 100_000)) + data
        case 1:
            return re.sub(rb"\d+", b"9" * chance.choice((20, 400, 5000)), data, count=1)
        case 2:
            return raw(data, chance)
    return dumped(tree(json.loads(data), chance))


def lines(data: bytes, chance: Chance) -> bytes:
    """Change cells or lines of a text: CSV, JSON lines, lists."""
    rows = data.split(b"\n")
    at = chance.randrange(len(rows))
    match chance.randrange(8):
        case 0:
            rows[at] = raw(rows[at], chance)
        case 1:
            rows[at:at] = [rows[at]] * chance.choice((1, 1, 50))
        case 2:
            del rows[at]
        case 3:
            cells = rows[at].split(b",")
            cells[chance.randrange(len(cells))] = chance.choice(CELLS)
            rows[at] = b",".join(cells)
        case 4:
            rows[at] = rows[at].replace(b",", chance.choice((b"\t", b";", b",,", b'","', b"")))
        case 5:
            rows[at] = b'"' + rows[at]
        case 6:
            rows[at] = rows[at] * chance.choice((2, 3000))
        case 7:
            rows[at] = json_file(rows[at], chance) if rows[at].startswith(b"{") else raw(rows[at], chance)
    return b"\n".join(rows)


def png(data: bytes, chance: Chance) -> bytes:
    """Change a chunk, leave it out or repeat it, with a right checksum."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    at = chance.randrange(len(chunks))
    kind, content = chunks[at]
    match chance.randrange(4):
        case 0:
            chunks[at] = kind, raw(content, chance)
        case 1:
            chunks[at : at + 1] = chance.choice(([], [chunks[at]] * 2, [chunks[at]] * 300))
        case 2 if kind == b"IDAT":
            chunks[at] = kind, zlib.compress(raw(zlib.decompress(content), chance))
        case _:
            field = chance.randrange(0, max(len(content) - 3, 1))
            chunks[at] = kind, content[:field] + integer(4, chance) + content[field + 4 :]
    summed = ((body, kind + body) for kind, body in chunks)
    packed = (struct.pack(">I", len(body)) + whole + struct.pack(">I", zlib.crc32(whole)) for body, whole in summed)
    return data[:8] + b"".join(packed)


def jpeg(data: bytes, chance: Chance) -> bytes:
    """Change a segment, leave it out or repeat it; repeat scans."""
    ends = [found.start() for found in re.finditer(rb"\xff[\xc0-\xfe]", data)] + [len(data)]
    at = chance.randrange(len(ends) - 1)
    begin, end = ends[at], ends[at + 1]
    segment = data[begin:end]
    match chance.randrange(4):
        case 0:
            segment = segment[:4] + raw(segment[4:], chance)
        case 1:
            segment = segment[:2] + integer(2, chance) + segment[4:]
        case 2:
            segment = segment * chance.choice((0, 2, 20, 3000))
        case 3:
            field = chance.randrange(len(segment))
            segment = segment[:field] + integer(2, chance) + segment[field + 2 :]
    return data[:begin] + segment + data[end:]


def zipped(inner: dict[str, Mutate]) -> Mutate:
    """Change a member of a zip by the mutation that its name's end has, or the list of members."""

    def mutate(data: bytes, chance: Chance) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        at = chance.randrange(len(members))
        name, content = members[at]
        match chance.randrange(8):
            case 0:
                members[at : at + 1] = chance.choice(([], [(f"{name}x", content)], [("../x.npy", content)]))
            case 1:
                members[at] = name, content + bytes(chance.choice((1, 1, 1, 10**6, 10**6, 10**6, 10**7, 10**8)))
            case _:
                change = next((change for end, change in inner.items() if name.endswith(end)), raw)
                members[at] = name, change(content, chance)
        packed = io.BytesIO()
        kind = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(packed, "w", kind, compresslevel=1) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name), content, compress_type=kind)
        return packed.getvalue()

    return mutate


def npy(data: bytes, chance: Chance) -> bytes:
    """Change the text of an array's header: shape, type, order; with a right length."""
    (length,) = struct.unpack_from("<H", data, 8)
    header, body = data[10 : 10 + length], data[10 + length :]
    match chance.randrange(5):
        case 0:
            header = re.sub(rb"\d+(?=[,)])", str(chance.choice((*WHOLE, -1, 10**30))).encode(), header, count=1)
        case 1:
            header = re.sub(rb"'descr': '[^']*'", b"'descr': '" + chance.choice(TYPES) + b"'", header)
        case 2:
            header = header.replace(b"False", chance.choice((b"True", b"None", b"__import__('os')", b"1" * 3000)))
        case 3:
            header = raw(header, chance)
        case 4:
            body = raw(body, chance)
    return data[:8] + struct.pack("<H", len(header) % 2**16) + header + body


def pickled(data: bytes, chance: Chance) -> bytes:
    """Put operations of a pickle between others: imports, calls, jumps, large constants."""
    at = chance.randrange(len(data) + 1)
    return raw(data, chance) if chance.random() < 0.4 else data[:at] + chance.choice(OPERATIONS) + data[at:]


def safetensors(*, sign: bool) -> Mutate:
    """Change the header's tree, the JSON inside its metadata, or the numbers; with `sign` the digest is right again."""

    def mutate(data: bytes, chance: Chance) -> bytes:
        (length,) = struct.unpack_from("<Q", data)
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        texts = [name for name, text in header.get("__metadata__", {}).items() if text[:1] in "{[" and text]
        match chance.randrange(4):
            case 0 if texts:
                name = chance.choice(texts)
                changed = json_file(header["__metadata__"][name].encode(), chance)
                header["__metadata__"][name] = changed.decode(errors="replace")
            case 1:
                body = raw(body, chance)
            case _:
                header = tree(header, chance)
        text = dumped(header).replace(b'": "', b'":"') + b" " * chance.choice((0, 0, 1, 64))
        changed = struct.pack("<Q", len(text)) + text + body
        return signed(changed) if sign else changed

    return mutate


def signed(data: bytes) -> bytes:
    """Put the digest of one of our files right."""
    zeros = re.sub(rb'"vitrail\.sha256":"[0-9a-f]{64}"', b'"vitrail.sha256":"' + b"0" * 64 + b'"', data)
    digest = hashlib.sha256(zeros).hexdigest().encode()
    return zeros.replace(b'"vitrail.sha256":"' + b"0" * 64, b'"vitrail.sha256":"' + digest, 1)


def tar(data: bytes, chance: Chance) -> bytes:
    """Change the header of a member, with a right checksum, or a whole block."""
    headers = [at for at in range(0, len(data), 512) if data[at + 257 : at + 262] == b"ustar"]
    at = chance.choice(headers)
    block = bytearray(data[at : at + 512])
    match chance.randrange(4):
        case 0:
            block[156:157] = chance.choice((b"1", b"2", b"3", b"5", b"6", b"L", b"K", b"x", b"g", b"S", b"7", b"\xff"))
        case 1:
            block[124:136] = chance.choice(SIZES)
        case 2:
            name = chance.choice((b"../x.png", b"/x.png", b"x" * 100, b"a.cls", b"a.json", b"a.pkl", b"\xff.png", b""))
            block[:100] = name.ljust(100, b"\0")
        case 3:
            field = chance.randrange(512)
            block[field : field + 4] = integer(4, chance)[: 512 - field]
    block = block[:512].ljust(512, b"\0")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    changed = data[:at] + bytes(block) + data[at + 512 :]
    return raw(changed, chance) if chance.random() < 0.2 else changed


def gzipped(inner: Mutate) -> Mutate:
    """Change what is inside of a gzip file; or give it very much of it."""

    def mutate(data: bytes, chance: Chance) -> bytes:
        content = inner(gzip.decompress(data), chance)
        return gzip.compress(content + bytes(chance.choice((*[0] * 60, 10**7, 10**8))), 1)

    return mutate


def idx(data: bytes, chance: Chance) -> bytes:
    """Change a field of the header."""
    at = chance.choice((0, 2, 3, 4, 8, 12))
    return data[:at] + integer(chance.choice((1, 4)), chance) + data[at + 4 :]


def matlab(data: bytes, chance: Chance) -> bytes:
    """Change what is inside of a compressed element."""
    kind, length = struct.unpack_from("<II", data, 128)
    if kind != 15 or chance.random() < 0.3:
        return raw(data, chance)
    content = raw(zlib.decompress(data[136 : 136 + length]), chance) + bytes(chance.choice((*[0] * 60, 10**7, 10**8)))
    packed = zlib.compress(content, 1)
    return data[:128] + struct.pack("<II", 15, len(packed)) + packed + data[136 + length :]


def fields(step: int = 4) -> Mutate:
    """Set whole numbers at even places to extremes: for formats that are tables of them, such as TIFF and Arrow."""

    def mutate(data: bytes, chance: Chance) -> bytes:
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = _place(len(data), chance) // step * step
            size = chance.choice((1, 2, 4, 8))
            changed[at : at + size] = integer(size, chance)
        return bytes(changed)

    return mutate


def any_of(*changes: Mutate) -> Mutate:
    """Choose one of several, and plain bytes now and then."""
    return lambda data, chance: chance.choice((*changes, *changes, raw))(data, chance)


def long_tar(members: dict[str, bytes], form: int) -> bytes:
    """A tar of plain files in one of its dialects."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()
