"""Every published checkpoint that has a name here. Nothing on this machine is looked at, and no network is used."""

from vitrail.base.errors import did_you_mean
from vitrail.published import clip, google, meta
from vitrail.published.entry import Published

CATALOGUE: dict[str, Published] = {row.name: row for row in (*google.ROWS, *meta.ROWS, *clip.ROWS)}
"""By name, in the order in which they are listed."""
_LOWERED = {name.lower(): row for name, row in CATALOGUE.items()}
_ENDS = (".safetensors", ".npz", ".pth", ".pt", ".bin")


def look_up(name: str) -> Published | None:
    """Return what is known of a name, in small or large letters; None for one that is not listed."""
    return _LOWERED.get(name.lower())


def nearest(name: str) -> str:
    """Return a question with the listed names that are near one; nothing for what ends as files of weights do."""
    return "" if name.lower().endswith(_ENDS) else did_you_mean(name, CATALOGUE)
