"""The keys that requests must carry, from a file of the user's."""

import stat
from pathlib import Path

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note
from vitrail.base.reading import read_bytes

MOST_KEYS, SHORTEST_KEY = 100, 16


def read_keys(path: str, note: Note) -> tuple[bytes, ...]:
    """Read the keys, one on each line; warn of a file that others may read."""
    lines = read_bytes(Path(path), error=ConfigError).split(b"\n")
    mode = Path(path).stat().st_mode
    keys = tuple(line.strip() for line in lines if line.strip())
    if not keys or len(keys) > MOST_KEYS or min(map(len, keys)) < SHORTEST_KEY:
        raise ConfigError(
            f"api_key_file {path} must have a key of at least {SHORTEST_KEY} characters on each line; make one with "
            f"`openssl rand -hex 32 > {path}`."
        )
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        note(f"{path} can be read by other users of this machine; run `chmod 600 {path}`.")
    return keys
