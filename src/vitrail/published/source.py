"""Where a published model comes from, read from what the user wrote: a name, hf:OWNER/NAME[@REVISION], an address."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from vitrail.base.errors import ConfigError
from vitrail.published.catalogue import look_up
from vitrail.published.entry import Published

_HUB = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?", re.ASCII)
_ADDRESS = re.compile(r"(https?):/{1,2}([^/].*)", re.IGNORECASE | re.DOTALL)  # a path has lost one of the two slashes
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts that are this machine, to which nobody is on the way."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A published model, and how it is reached."""

    name: str
    """What the user calls it."""
    place: str
    """The address, or hf:OWNER/NAME[@REVISION]; two names of the same place are the same model."""
    entry: Published | None = None
    """What the catalogue states about it, if it is listed there."""

    @property
    def repository(self) -> tuple[str, str | None] | None:
        """OWNER/NAME and the revision of a repository of Hugging Face; None for an address."""
        match = _HUB.fullmatch(self.place)
        return None if match is None else (match["repository"], match["revision"])

    @property
    def file(self) -> str:
        """The name of the file that an address ends in, without anything that is not a letter of a plain name."""
        last = PurePosixPath(unquote(urlsplit(self.place).path)).name
        return re.sub(r"[^\w.+-]", "_", last, flags=re.ASCII).lstrip(".")[-100:] or "weights"

    @property
    def label(self) -> str:
        """A short name of one word, for folders and titles: dinov2-S-14, or the last part of the place."""
        if self.entry is not None:
            return self.entry.name.replace("/", "-")
        return PurePosixPath(self.file).stem if self.repository is None else self.repository[0].partition("/")[2]

    @property
    def key(self) -> str:
        """The name of its folder in the cache: readable, and another one for another place."""
        words = re.sub(r"[^A-Za-z0-9.]+", "-", self.place.partition(":")[2]).strip("-.")
        return f"{words[-60:].lstrip('-.')}-{hashlib.sha256(self.place.encode()).hexdigest()[:12]}"


def parse_source(text: str) -> Source | None:
    """Return where a name leads; None for a text that is neither listed nor an address, such as the path of a file."""
    if (entry := look_up(text)) is not None:
        return Source(name=entry.name, place=entry.source, entry=entry)
    if text.startswith("hf:"):
        if _HUB.fullmatch(text) is None:
            raise ConfigError(
                f"{text!r} is not a repository of Hugging Face; write hf:OWNER/NAME or hf:OWNER/NAME@REVISION."
            )
        return Source(name=text, place=text)
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return None
    address = f"{match[1].lower()}://{match[2]}"
    check_address(address)
    return Source(name=address, place=address)


def check_address(address: str) -> None:
    """Refuse an address whose bytes anybody on the way could change, and one that is none."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if host is None or not address.isascii() or any(letter <= " " for letter in address):
        raise ConfigError(f"{address!r} is not an address; write https://HOST/PATH.")
    if parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK):
        return
    raise ConfigError(
        f"{address} is not encrypted, so anybody on the way could change the file; give an https address."
    )


def is_path(text: str) -> bool:
    """Return whether something on this machine has the name: that comes before published names."""
    return os.path.lexists(text)
