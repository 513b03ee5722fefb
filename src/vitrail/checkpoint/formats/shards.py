"""Weights in several files with an index beside them, as transformers saves large models."""

from collections.abc import Callable
from pathlib import Path

from vitrail.base.errors import CheckpointError
from vitrail.base.limits import ENTRIES
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.formats.folder import read_json

INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


def open_shards(index: Path, open_shard: Callable[[Path], TensorSource]) -> TensorSource:
    """Open the files that an index names as one source; each must hold what the index states.

    `open_shard` opens one of them. A name that leads out of the folder is refused.
    """
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(name, str) for name in places.values()):
        raise CheckpointError(f"{index} has no weight_map, the file of each tensor; get the folder again.")
    files = list(dict.fromkeys(places.values()))
    ENTRIES.check(len(files), str(index), CheckpointError)
    for name in files:
        if name != Path(name).name or not (index.parent / name).is_file():
            raise CheckpointError(f"{index} names the file {name!r}, which the folder does not hold; get it again.")
    shards = {name: open_shard(index.parent / name) for name in files}
    missing = [tensor for tensor, name in places.items() if tensor not in shards[name]]
    surplus = [tensor for name, shard in shards.items() for tensor in shard if places.get(tensor) != name]
    if missing or surplus:
        word, names = ("lack", missing) if missing else ("hold more than", surplus)
        raise CheckpointError(
            f"the files beside {index} {word} what it lists: {', '.join(names[:5])}; get the folder again."
        )
    return TensorSource(
        origin=str(index.parent),
        specs={tensor: shards[name].specs[tensor] for tensor, name in places.items()},
        fetch=lambda tensor: shards[places[tensor]][tensor],
        release=lambda tensor: shards[places[tensor]].release(tensor),
    )
