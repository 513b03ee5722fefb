"""Batches: the stream of training from any step on, and each rank's shard for evaluation, read by any workers.

A worker is handed the number of a step and nothing else: there is no state to save, nothing to replay, and no seed that
depends on the worker.
"""

import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import signal_handling

from vitrail.base.errors import ConfigError, ImageError, WorkerError
from vitrail.base.memory import keep_freed_memory
from vitrail.data.ahead import made_ahead
from vitrail.data.augment.settings import Augmentation
from vitrail.data.batch import Batch, View
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import batch_positions, evaluation_shard, training_order
from vitrail.data.steps import EvaluationSteps, TrainingSteps

__all__ = ["Batch", "View", "evaluation_batches", "training_batches"]

Steps = TrainingSteps | EvaluationSteps


def training_batches(
    dataset: Dataset,
    *,
    image_size: tuple[int, int],
    augmentation: Augmentation,
    batch: int,
    seed: int,
    stop_step: int,
    start_step: int = 0,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    channels: int | None = None,
    skip_broken: Budget | None = None,
    balanced: bool = False,
    views: Sequence[View] = (),
) -> Iterator[Batch]:
    """Yield one rank's slices of the global batches from `start_step` to before `stop_step`.

    `views` are those that follow the first, which is made by `augmentation` and `image_size`.

    Without `skip_broken` the first image that cannot be read raises its error; with it, another takes its place until
    the budget is used up.
    """
    batch_positions(0, batch=batch, rank=rank, world=world)  # refuses what cannot be shared
    if augmentation.mixes and world > 1 and batch // world % 2:
        raise ConfigError(
            f"{world} processes have {batch // world} images each of {batch}, but mixup and cutmix need pairs; "
            f"choose a batch that is a multiple of {2 * world}."
        )
    steps = TrainingSteps(
        dataset=dataset,
        order=training_order(dataset, seed=seed, balanced=balanced),
        views=(View(augmentation=augmentation, image_size=image_size), *views),
        channels=channels or dataset.channels,
        batch=batch,
        seed=seed,
        rank=rank,
        world=world,
        skips=skip_broken is not None,
    )
    return _batches(steps, range(start_step, stop_step), dataset, workers, skip_broken)


def evaluation_batches(
    dataset: Dataset,
    preprocessing: Preprocessing,
    *,
    batch: int,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    skip_broken: Budget | None = None,
) -> Iterator[Batch]:
    """Yield every image of one rank's shard once, in order; the last batch may be smaller.

    With `skip_broken` an image that cannot be read is left out, so that a batch may be smaller, or even empty.
    """
    steps = EvaluationSteps(
        dataset=dataset,
        preprocessing=preprocessing,
        shard=evaluation_shard(len(dataset), rank=rank, world=world),
        batch=batch,
        skips=skip_broken is not None,
    )
    return _batches(steps, range(len(steps)), dataset, workers, skip_broken)


def _batches(steps: Steps, numbers: range, dataset: Dataset, workers: int, budget: Budget | None) -> Iterator[Batch]:
    """Raise errors that workers return as values, and count the broken images."""
    skipped: dict[int, str] = {}
    for batch in _iterate(steps, numbers, workers):
        if isinstance(batch, ImageError):
            raise ImageError(f"{batch} Fix the image, or set `skip_broken` to skip such images.") from None
        if budget is not None and any(index not in skipped for index, _ in batch.broken):
            skipped |= dict(batch.broken)
            budget.spend(
                [(dataset.name(index), why) for index, why in skipped.items()], len(dataset), where=dataset.where
            )
        yield batch


def _iterate(steps: Steps, numbers: range, workers: int) -> Iterator[Batch | ImageError]:
    """Make the steps here, or in other processes, in order."""
    pins = torch.cuda.is_available()
    if not workers:
        for batch in (
            made_ahead(steps.__getitem__, numbers) if torch.get_num_threads() > 1 else map(steps.__getitem__, numbers)
        ):
            yield batch.pin_memory() if pins and isinstance(batch, Batch) else batch
        return
    loader: DataLoader[Batch | ImageError] = DataLoader(
        steps,  # type: ignore[arg-type]  # anything with __getitem__ is a map-style data set
        batch_size=None,
        sampler=numbers,
        num_workers=workers,
        collate_fn=_as_it_is,
        pin_memory=pins,
        worker_init_fn=_start_worker,
        # Forked workers share the arrays of the index and of the images with this process; spawned ones would copy
        # them. Forking is safe here although torch has threads: a worker runs one thread, and never touches CUDA.
        multiprocessing_context="fork" if sys.platform == "linux" else None,
        generator=torch.Generator(),  # the loader draws a seed that nothing uses; not from the model's stream
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
        iterator = iter(loader)
    try:
        yield from iterator
    except (RuntimeError, ConnectionError, EOFError) as error:
        if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
            raise
        with suppress(RuntimeError):
            time.sleep(0.05)  # torch's own notice of the dead process may still be on its way
        raise WorkerError(
            f"one of {workers} processes that read images was ended from outside, most often because memory ran out; "
            "use fewer `workers` or a smaller `batch`."
        ) from error
    except BaseException:
        _end_workers(iterator)
        raise


def _end_workers(iterator: Any) -> None:
    """End the workers of an abandoned iterator at once: a stopped one would never end by itself.

    torch would raise an error for each of them some time later, so it forgets them first.
    """
    signal_handling._remove_worker_pids(id(iterator))  # type: ignore[attr-defined]
    iterator._worker_pids_set = False
    for worker in iterator._workers:
        worker.kill()
        worker.join()


def _start_worker(_: int) -> None:
    """Keep memory for the next batch, and leave signals to the main process, which saves and then ends its workers.

    Ctrl-C, a terminal that is closed, and SIGTERM from a scheduler reach the whole group: a worker that went at once
    would take the run along before it is saved. A second SIGTERM ends it.
    """
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, signal.SIG_DFL) and None)


def _as_it_is(batch: Any) -> Any:
    return batch
