"""What an evaluation needs of runs: the images that a model has not learned from.

Which images, unless a split is named: `test` where there is one, else `val`, else everything. A pile without splits is
everything too, but for the model that was trained on the same pile: then it is the part that its run held out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitrail.data.catalog import Opened
from vitrail.data.dataset import Dataset
from vitrail.data.sources.pile import split_of
from vitrail.runs.data import names_digest

HELD_OUT = ("test", "val")
HELD_OUT_NOTE = "the images that its run held out are used; `split=train` uses the others."
VAL_FRACTION = 0.1


def open_evaluation_data(
    where: str,
    *,
    split: str | None,
    provenance: Mapping[str, Any],
    root: str | None = None,
    skip_broken: str = "0",
    seed: int = 0,
) -> Dataset:
    """Open the images to evaluate on, with the classes of all the data's splits."""
    opened = Opened.of(where, skip_broken, root, None, VAL_FRACTION, seed, every_class=True)
    learned = trained_on(provenance) if opened.is_one_pile() and (opened.targets >= 0).all() else None
    note = ""
    if learned is not None:
        as_then = replace(opened, val_fraction=learned.val_fraction, seed=learned.seed)
        if names_digest(as_then.split("val")) == learned.digest:
            opened, split = as_then, split or "val"
            note = f"{where} is what the model learned from; {HELD_OUT_NOTE}" if split == "val" else ""
        elif Path(learned.where).resolve().name == Path(where).resolve().name:
            note = (
                f"{where} has changed since the model learned from it; these images may include some that it has seen."
            )
    if note:
        opened = replace(opened, notes=(*opened.notes, note))
    if split is not None:
        return opened.split(split_of(split) or split)
    held_out = [] if opened.is_one_pile() else [name for name in HELD_OUT if name in opened.names()]
    return opened.split(held_out[0]) if held_out else opened.everything()


@dataclass(frozen=True, kw_only=True)
class Learned:
    """How a run cut its validation images off."""

    where: str
    val_fraction: float
    seed: int
    digest: str
    """Digest of their names."""


def trained_on(provenance: Mapping[str, Any]) -> Learned | None:
    """Return the data that a model learned from, if its file states it; older files have the digest beside `where`."""
    config = provenance.get("config")
    data = config.get("data") if isinstance(config, Mapping) else None
    if not isinstance(config, Mapping) or not isinstance(data, Mapping):
        return None
    facts = config.get("facts")
    digest = facts.get("held_digest") if isinstance(facts, Mapping) else data.get("held")
    where, fraction, seed = (data.get(name) for name in ("where", "val_fraction", "split_seed"))
    seed = config.get("seed") if seed is None else seed
    if not isinstance(where, str) or not isinstance(fraction, float) or not isinstance(seed, int):
        return None
    if not isinstance(digest, str) or not 0 < fraction < 1:
        return None
    return Learned(where=where, val_fraction=fraction, seed=seed, digest=digest)
