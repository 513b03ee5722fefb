"""From any pile of images to batches: `open` is the door."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrail.data.catalog import open as open  # noqa: A004
    from vitrail.data.catalog import open_splits as open_splits
    from vitrail.data.catalog import save_index as save_index
    from vitrail.data.dataset import Dataset as Dataset
    from vitrail.data.sources.manifest import write_manifest as write_manifest

# As in vitrail itself: imported when first used, so that asking for a config does not wait for everything else.
_HOMES = {
    "Dataset": "vitrail.data.dataset",
    "open": "vitrail.data.catalog",
    "open_splits": "vitrail.data.catalog",
    "save_index": "vitrail.data.catalog",
    "write_manifest": "vitrail.data.sources.manifest",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vitrail.data' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
