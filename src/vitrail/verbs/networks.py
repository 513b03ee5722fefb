"""Several networks at once, and the data to measure them on."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import cast

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.notes import Note
from vitrail.data.dataset import Dataset
from vitrail.runs.evaluation import open_evaluation_data
from vitrail.verbs.network import FileSettings, ModelLike, Network, open_network


def listed(models: ModelLike | Sequence[ModelLike]) -> list[ModelLike]:
    """Return one model or several as a list."""
    if not isinstance(models, list | tuple):
        return [cast(ModelLike, models)]
    if not models:
        raise InputError("no model is given; give one, or several to compare.")
    return list(models)


@contextmanager
def open_networks(
    models: Sequence[ModelLike], *, verb: str, file: FileSettings, threads: int | None, note: Note
) -> Iterator[list[Network]]:
    """Open every model in float32 on one rank, for a verb that several ranks cannot share."""
    with ExitStack() as stack:
        networks = []
        for model in models:
            opened = open_network(model, file=file, threads=threads, note=note, float32=True)
            network, ranks = stack.enter_context(opened)
            if ranks.world > 1:
                raise ConfigError(f"{verb} computes on one rank; start it without torchrun.")
            networks.append(network)
        yield networks


def open_data(
    data: str | os.PathLike[str] | Dataset,
    network: Network,
    *,
    split: str | None,
    root: str | os.PathLike[str] | None,
    skip_broken: str = "100%",
    seed: int = 0,
) -> Dataset:
    """Open images that a network has not learned from; an opened data set is taken as it is."""
    if isinstance(data, Dataset):
        if split is not None or root is not None:
            raise ConfigError("split and root are for data that is yet to be opened; leave them out for a data set.")
        return data
    return open_evaluation_data(
        os.fspath(data),
        split=split,
        provenance=network.info.provenance,
        root=None if root is None else os.fspath(root),
        skip_broken=skip_broken,
        seed=seed,
    )
