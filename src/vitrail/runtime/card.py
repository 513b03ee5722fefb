"""What an exported file carries beside its graph, and the digest that detects a damaged one; imports no torch."""

import hashlib
import json
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.base.reading import open_regular
from vitrail.base.settings import from_dict, to_dict
from vitrail.data.preprocessing import Preprocessing
from vitrail.runtime.choice import Precision

Entry = Literal["image", "pixels", "input"]
"""What goes in: whole images of any size (uint8, batch height width channel), the same at the model's size, or the
model's own input (float32, batch channel height width, normalised)."""

KEY = "vitrail"
"""The name under which a file stores its card."""
MARK = b"vitrail-sha256-"
"""What stands before the digest, somewhere in the file."""
_DIGEST = re.compile(MARK + rb"([0-9a-f]{64})")
NO_DIGEST = MARK.decode() + "0" * 64
CHUNK = 2**30
"""Bytes that are digested at once."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts about a graph."""

    entry: Entry
    """What goes in."""
    preprocessing: Preprocessing
    """How an image becomes the model's input: inside the graph or before it."""
    num_classes: int
    """Outputs of the last layer; 0 where there is only a representation."""
    feature_width: int
    """Numbers of the representation."""
    outputs: tuple[str, ...]
    """The names of the outputs."""
    labels: tuple[str, ...] | None = None
    """The name of each class."""
    precision: Precision = "float32"
    """The numbers that most of it computes with."""
    model: str = ""
    """The model in a few words."""
    grid: tuple[int, int] | None = None
    """Rows and columns of patches; None where there are none."""
    prefix: int = 0
    """Tokens before those of the patches."""
    attention_shape: tuple[int, int] = (0, 0)
    """Blocks and heads of the model that have attention maps."""
    attention_blocks: tuple[int, ...] = ()
    """The blocks whose maps are in the output `attention`, in its order."""
    merge_tokens: int = 0
    """How many tokens each block merges into others."""
    source: str | None = None
    """SHA-256 of the file that it was made from."""
    versions: dict[str, str] = field(default_factory=dict)
    """The programs that wrote it."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Where the weights come from."""
    notes: tuple[str, ...] = ()
    """What was done to it, a sentence each."""

    def text(self) -> str:
        """Return the card as JSON."""
        return json.dumps(to_dict(self), separators=(",", ":"))


def read_card(text: str, path: Path) -> Card:
    """Read a card from the file that carries it."""
    try:
        return from_dict(Card, json.loads(text), where=f"the facts in {path}")
    except (ValueError, RecursionError, ConfigError) as error:
        raise CheckpointError(f"{path} does not describe itself as an exported model does: {error}") from None


def signed(contents: Sequence[bytes]) -> list[bytes]:
    """Put the digest of some files into the one of them that has room for it."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    mark = MARK + digest.hexdigest().encode()
    return [content.replace(NO_DIGEST.encode(), mark, 1) for content in contents]


def check_digest(paths: Sequence[Path]) -> str | None:
    """Return the digest that files carry, or None if they carry none; refuse files of which a bit has changed.

    Almost all of it happens without Python's lock, so that a thread can do it while others import.
    """
    computed, recorded = hashlib.sha256(), None
    for path in paths:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            place = None if recorded is not None else _place(content)
            start = 0
            with memoryview(content) as view:
                if place is not None:
                    recorded = content[place - 64 : place].decode()
                    _update(computed, view, 0, place - 64)
                    computed.update(b"0" * 64)
                    start = place
                _update(computed, view, start, len(content))
    if recorded is not None and recorded != computed.hexdigest():
        raise CheckpointError(
            f"{paths[0]} is damaged: its SHA-256 does not match the one that it carries; export the model again, or "
            "get the file again."
        )
    return recorded


def _place(content: mmap.mmap) -> int | None:
    """Return where the digits of the digest end; facts are at the end of a file, so it is searched from there."""
    start = content.rfind(MARK)
    match = None if start < 0 else _DIGEST.match(content[start : start + len(MARK) + 64])
    return None if match is None else start + match.end()


def _update(digest: Any, view: memoryview, start: int, end: int) -> None:
    for begin in range(start, end, CHUNK):
        with view[begin : min(begin + CHUNK, end)] as part:
            digest.update(part)
