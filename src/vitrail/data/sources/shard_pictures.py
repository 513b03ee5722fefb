"""Images inside tar files, read in place."""

import os
from functools import lru_cache
from pathlib import Path

from vitrail.base.errors import ImageError
from vitrail.data.names import Names
from vitrail.data.sources.files import digest_rows
from vitrail.data.sources.pile import Codes

_MOST_OPEN = 64


class _Handle:
    """An open file that is closed after its last use, in any thread."""

    def __init__(self, path: Path) -> None:
        self.number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        """Close it, if it could be opened."""
        if "number" in self.__dict__:
            os.close(self.number)


class ShardPictures:
    """Images inside tar files, by offset."""

    def __init__(
        self,
        shards: tuple[Path, ...],
        names: Names,
        shard: Codes,
        offsets: Codes,
        sizes: Codes,
    ) -> None:
        self.shards, self.names, self.shard, self.offsets, self.sizes = shards, names, shard, offsets, sizes
        self._handle = lru_cache(_MOST_OPEN)(_Handle)

    def __len__(self) -> int:
        """Count the images."""
        return len(self.names)

    def name(self, row: int) -> str:
        """Return the shard and the member."""
        return f"{self.shards[self.shard[row]]}:{self.names.text(row)}"

    def read(self, row: int) -> bytes:
        """Read one member."""
        size = int(self.sizes[row])
        handle = self._handle(self.shards[self.shard[row]])  # kept open while it is read, whatever other threads open
        data = os.pread(handle.number, size, int(self.offsets[row]))
        if len(data) < size:
            raise ImageError(f"the shard has become shorter: {len(data)} of {size} bytes are there.")
        return data

    def digest(self, rows: Codes) -> bytes:
        """Digest which members of which shards they are, and the sizes and times of the shards."""
        return digest_rows(self.shards, rows)

    def __reduce__(self) -> tuple[object, ...]:
        """Leave the open files behind: another process opens its own."""
        return ShardPictures, (self.shards, self.names, self.shard, self.offsets, self.sizes)
