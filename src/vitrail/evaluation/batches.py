"""The batches of an evaluation: this rank's share of a data set, with its progress shown on the first rank."""

from collections.abc import Iterator

from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.data.batch import Batch
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset
from vitrail.data.loader import evaluation_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import evaluation_shard


def ranked_batches(
    dataset: Dataset,
    preprocessing: Preprocessing,
    ranks: Ranks,
    *,
    batch: int,
    workers: int,
    skip_broken: Budget | None,
    progress: Progress,
    title: str,
) -> Iterator[Batch]:
    """Yield the batches of this rank; `title` names the work beside its progress."""
    batches = evaluation_batches(
        dataset,
        preprocessing,
        batch=batch,
        rank=ranks.rank,
        world=ranks.world,
        workers=workers,
        skip_broken=skip_broken,
    )
    images = len(evaluation_shard(len(dataset), rank=ranks.rank, world=ranks.world))
    display: Progress = progress if ranks.first else silent
    return display(batches, total=-(-images // batch), title=title)
