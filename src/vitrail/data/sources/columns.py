"""The columns of a large plain CSV, cut by NumPy: ten million lines in seconds, without an object for each.

"Plain" means: no quotes, and the same number of delimiters in every line. Everything else goes through Python's own
reader in manifest.py, line by line.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from vitrail.base.errors import InputError
from vitrail.base.memory import check_memory
from vitrail.base.reading import open_regular
from vitrail.data.budget import Skipped
from vitrail.data.names import Names
from vitrail.data.sources.pile import Codebook

_CHUNK = 1 << 24
_MOST_WORD = 128
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Keep the first N of eight bytes."""
_GUARDED = re.compile(rb"(?:\A|[\n,;\t])'+[=+\-@\t\r]")
"""A cell that `base/rows.py` keeps spreadsheets from running."""
_NEWLINE, _RETURN, _DOT, _SLASH = b"\n\r./"

Bytes = UInt8[np.ndarray, "byte"]
Gathered = UInt8[np.ndarray, "gathered"]
Positions = Int[np.ndarray, "line"]
Rows = Int[np.ndarray, "kept"]
Places = Callable[[Path, list[str]], dict[str, int]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """The rows of a manifest; labels and splits are numbers of words, -1 for none."""

    paths: Names
    labels: Positions
    label_words: tuple[str, ...]
    splits: Positions
    split_words: tuple[str, ...]
    broken: list[Skipped]
    notes: list[str]


class _NotPlainError(Exception):
    """A file that needs the slow reader."""


def delimiter(path: Path) -> str:
    """Return the delimiter of the columns, by the first line; a comma when there is none."""
    with open_regular(path) as file:
        line = file.readline(1 << 16)
    best = max("\t,;", key=lambda mark: line.count(mark.encode()))
    return best if best.encode() in line else ","


def not_utf8(path: Path, error: UnicodeDecodeError) -> InputError:
    """Return the error for a manifest in another encoding."""
    return InputError(f"{path} is not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8.")


def problem_with(name: str) -> str | None:
    """Return why a path of a manifest is not read; empty where it is."""
    if not name:
        return "the row has no path"
    if re.search("[\0\ud800-\udfff]", name):
        return "the path has a zero byte, or bytes that are not text"
    if name.startswith("/") or ".." in name.split("/"):
        return "the path leads out of the folder of the manifest; give a root folder above it"
    return None


def read_plain(path: Path, places: Places, prefixes: tuple[bytes, ...]) -> Columns | None:
    """Read a plain CSV; None when it is not plain. `prefixes` are the beginnings that make an absolute path inner."""
    mark = ord(delimiter(path))
    check_memory(path.stat().st_size, f"the list {path}")
    with open_regular(path) as file:
        first = file.readline(1 << 20)
    if b'"' in first or not first.endswith(b"\n"):
        return None
    try:
        header = first.decode("utf-8-sig").rstrip("\r\n").split(chr(mark))
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    at = places(path, header)
    words = {"label": Codebook(str(path)), "split": Codebook(str(path))}
    codes: dict[str, list[Positions]] = {"label": [], "split": []}
    blob, used = np.empty(path.stat().st_size, np.uint8), 0  # the paths are shorter; what is not used is never there
    lengths: list[Positions] = [np.zeros(1, np.int32)]
    broken: list[Skipped] = []
    try:
        for chunk in _chunks(path, len(first)):
            starts, ends = _cut(chunk, mark, len(header))
            begin, end = _inner(chunk, starts[:, at["path"]], ends[:, at["path"]], prefixes)
            good = _check(chunk, begin, end, broken)
            begin, end = begin[good], end[good]
            inner = _gather(chunk, begin, end)
            blob[used : used + len(inner)] = inner
            used += len(inner)
            lengths.append((end - begin).astype(np.int32))
            for what, book in words.items():
                if what in at:
                    column = at[what]
                    codes[what].append(_words(chunk, starts[good, column], ends[good, column], book))
                else:
                    codes[what].append(np.full(len(begin), -1, np.int32))
    except _NotPlainError:
        return None
    return Columns(
        paths=Names(blob[:used], np.cumsum(_joined(lengths), dtype=np.int64)),
        labels=_joined(codes["label"]),
        label_words=tuple(words["label"].codes),
        splits=_joined(codes["split"]),
        split_words=tuple(words["split"].codes),
        broken=broken,
        notes=words["label"].notes(),
    )


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Join arrays, giving each part back as soon as it is copied."""
    if not parts:
        return np.empty(0, np.int32)
    whole = np.empty(sum(map(len, parts)), parts[0].dtype)
    at = len(whole)
    while parts:
        part = parts.pop()
        at -= len(part)
        whole[at : at + len(part)] = part
    return whole


def _chunks(path: Path, start: int) -> Iterator[Bytes]:
    """Read a file in pieces of whole lines."""
    rest = b""
    with open_regular(path) as file:
        file.seek(start)
        while block := file.read(_CHUNK):
            if b'"' in block or b"\0" in block or (b"'" in block and _GUARDED.search(block)):
                raise _NotPlainError
            block = rest + block
            whole = block.rfind(b"\n") + 1
            if whole == 0 and len(block) > 4 * _CHUNK:
                raise _NotPlainError
            block, rest = block[:whole], block[whole:]
            if block:
                yield _checked(path, block)
    if rest:
        yield _checked(path, rest + b"\n")


def _checked(path: Path, block: bytes) -> Bytes:
    """Refuse text in another encoding."""
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(path, error) from None
    return np.frombuffer(block, np.uint8)


def _cut(chunk: Bytes, mark: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the cells of each line start and end, as two tables of line x column."""
    stops = np.flatnonzero(chunk == _NEWLINE)
    marks = np.flatnonzero(chunk == mark)
    if len(marks) != (width - 1) * len(stops):
        raise _NotPlainError
    begins = np.concatenate([[0], stops[:-1] + 1])
    stops = stops - (chunk[np.maximum(stops - 1, 0)] == _RETURN)
    table = marks.reshape(len(stops), width - 1)
    if width > 1 and not ((table[:, 0] >= begins).all() and (table[:, -1] <= stops).all()):
        raise _NotPlainError
    if width == 1 and (begins == stops).any():  # empty lines
        raise _NotPlainError
    return np.column_stack([begins, table + 1]), np.column_stack([table, stops])


def _inner(
    chunk: Bytes, starts: Positions, ends: Positions, prefixes: tuple[bytes, ...]
) -> tuple[Positions, Positions]:
    """Make absolute paths that begin with the folder of the manifest relative to it."""
    starts = starts.copy()
    absolute = np.flatnonzero((ends > starts) & (chunk[np.minimum(starts, len(chunk) - 1)] == _SLASH))
    for prefix in prefixes:
        long_enough = absolute[ends[absolute] - starts[absolute] > len(prefix)]
        cells = chunk[starts[long_enough, None] + np.arange(len(prefix))]
        inside = long_enough[(cells == np.frombuffer(prefix, np.uint8)).all(axis=1)]
        starts[inside] += len(prefix)
        absolute = np.setdiff1d(absolute, inside, assume_unique=True)
    return starts, ends


def _check(chunk: Bytes, starts: Positions, ends: Positions, broken: list[Skipped]) -> Rows:
    """Return the rows whose paths may be read; only those with a leading slash or two dots are looked at closely."""
    suspect = (ends == starts) | (chunk[np.minimum(starts, len(chunk) - 1)] == _SLASH)
    dots = np.flatnonzero((chunk[:-1] == _DOT) & (chunk[1:] == _DOT))
    lines = np.searchsorted(ends, dots)
    lines = lines[lines < len(ends)]
    suspect[lines] = True
    good = np.ones(len(starts), bool)
    for row in np.flatnonzero(suspect):
        name = chunk[starts[row] : ends[row]].tobytes().decode()
        if problem := problem_with(name):
            broken.append((name or "a row", problem))
            good[row] = False
    return np.flatnonzero(good)


def _gather(chunk: Bytes, starts: Positions, ends: Positions) -> Gathered:
    """Copy the bytes from starts to ends, one after the other."""
    change = np.zeros(len(chunk) + 1, np.int8)
    change[starts] += 1
    change[ends] -= 1
    return chunk[np.cumsum(change[:-1], dtype=np.int8).view(bool)]


def _words(chunk: Bytes, starts: Positions, ends: Positions, book: Codebook) -> Positions:
    """Give the words of a column their numbers: hash all at once, and look only the different ones up."""
    lengths = ends - starts
    longest = int(lengths.max(initial=0))
    if longest > _MOST_WORD:
        raise _NotPlainError
    window = np.ndarray(len(chunk), "<u8", np.append(chunk, np.zeros(8, np.uint8)), strides=(1,))  # 8 bytes from each
    packed = np.empty((max(1, -(-longest // 8)), len(starts)), np.uint64)  # no text has zero bytes: they pad
    for at, part in enumerate(packed):
        left = np.clip(lengths - 8 * at, 0, 8)
        part[:] = window[np.minimum(starts + 8 * at, len(chunk) - 1)] & _MASKS[left]
    hashes = packed[0].copy()
    for part in packed[1:]:
        hashes ^= hashes >> np.uint64(29)
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + part
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    if not all(
        (part[first][inverse] == part).all() for part in packed
    ):  # two words with one hash: hardly ever, but then not here
        raise _NotPlainError
    table = np.empty(len(first), np.int32)
    for at in np.argsort(first):  # words are numbered in the order in which they come
        table[at] = book.code(chunk[starts[first[at]] : ends[first[at]]].tobytes().decode())
    return table[inverse]
