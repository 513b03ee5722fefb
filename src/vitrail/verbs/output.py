"""Files that a verb will write: refused before the work that leads to them."""

import os
from pathlib import Path

from vitrail.base.errors import ConfigError
from vitrail.base.files import check_writable


def output_path(name: str | os.PathLike[str] | None, suffix: str) -> Path | None:
    """Return the path of a file that can be written, or say why it cannot, before anything is read."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix.lower() != suffix:
        raise ConfigError(f"{name} is to be written as {suffix[1:].upper()}; give a name that ends in {suffix}.")
    check_writable(path)
    return path
