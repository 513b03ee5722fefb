"""Where images are stored: access to them by number, whatever the source; imports no torch."""

from typing import Protocol, runtime_checkable

import numpy as np

from vitrail.data.names import Rows

UNLABELLED = -1
"""The class of an image without one."""


@runtime_checkable
class Pictures(Protocol):
    """Access to images by number."""

    def __len__(self) -> int:
        """Count the images."""

    def name(self, row: int) -> str:
        """Return the name of an image for the user: a path, a member of a shard, a number in an array."""

    def read(self, row: int) -> bytes | np.ndarray:
        """Return an encoded file, or an array of height x width (x channel) of uint8."""

    def digest(self, rows: Rows) -> bytes:
        """Digest the state of the files: paths below the root, sizes and times, or the numbers of arrays."""
