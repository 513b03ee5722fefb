"""Files that a verb will write: refused before the work that leads to them."""

import tempfile
from pathlib import Path

from vitrail.base.errors import ConfigError, InputError


def output_path(name: str | None, suffix: str) -> Path | None:
    """Return the path of a file that can be written, or say why it cannot, before anything is read."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix.lower() != suffix:
        raise ConfigError(f"{name} is to be written as {suffix[1:].upper()}; give a name that ends in {suffix}.")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} into; make it first.")
    try:
        is_folder = path.is_dir()
    except OSError as error:
        raise InputError(f"{name} cannot be written: {error.strerror}; give another name.") from None
    if is_folder:
        raise InputError(f"{path} is a folder, but a file is to be written there; give another name.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):  # rights tell less: root has them all, on a read-only disk too
            return path
    except OSError as error:
        raise InputError(
            f"{path.parent} may not be written to ({error.strerror}); give another place for {path.name}."
        ) from None
