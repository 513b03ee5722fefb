"""Batches: the same whoever makes them."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.arrays import dataset, noise
from tests.data.augment.test_apply import EVERYTHING
from vitrail.base.errors import ConfigError, ImageError, InputError, WorkerError
from vitrail.base.seeds import key, keys, uniform
from vitrail.data.augment.apply import NO_AUGMENTATION, Augmentation, augment_all
from vitrail.data.augment.mixing import mix
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset
from vitrail.data.loader import Batch, View, evaluation_batches, training_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import Order
from vitrail.data.transforms import preprocess

SIZE = (8, 8)


def mixed_sizes() -> Dataset:
    """Small arrays and larger ones."""
    rng = np.random.default_rng(0)
    sides = [(12, 10), (9, 9), (60, 70), (12, 10), (3, 50)] * 5
    return dataset([rng.integers(0, 256, (*side, 3), dtype=np.uint8) for side in sides], np.arange(25) % 4)


def training(data: Dataset, **changes) -> list[Batch]:
    chosen = {"image_size": SIZE, "augmentation": EVERYTHING, "batch": 8, "seed": 7, "stop_step": 10} | changes
    return list(training_batches(data, **chosen))


def same(one: Batch, other: Batch) -> bool:
    ours, theirs = one.tensors(), other.tensors()
    return one.broken == other.broken and all(torch.equal(ours[name], theirs[name]) for name in ours | theirs)


def joined(parts: list[Batch]) -> Batch:
    return Batch(
        views=tuple(torch.cat(views) for views in zip(*(part.views for part in parts), strict=True)),
        targets={name: torch.cat([part.targets[name] for part in parts]) for name in parts[0].targets},
        indices=torch.cat([part.indices for part in parts]),
        positions=torch.cat([part.positions for part in parts]),
    )


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("balanced", [False, True])
def test_batches_are_the_same_for_any_number_of_workers(workers: int, balanced: bool) -> None:
    data = mixed_sizes()
    here = training(data, balanced=balanced)
    there = training(data, balanced=balanced, workers=workers)
    assert len(here) == len(there) == 10
    assert all(map(same, here, there))


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("balanced", [False, True])
def test_the_slices_of_all_ranks_are_the_batches_of_one(world: int, balanced: bool) -> None:
    data = mixed_sizes()
    ranks = [training(data, rank=rank, world=world, balanced=balanced) for rank in range(world)]
    for whole, *parts in zip(training(data, balanced=balanced), *ranks, strict=True):
        assert same(whole, joined(parts))


@given(st.integers(0, 9), st.integers(1, 4))
@settings(max_examples=8)
def test_the_stream_can_be_entered_at_any_step(start: int, length: int) -> None:
    entered = training(mixed_sizes(), start_step=start, stop_step=min(start + length, 10))
    assert len(entered) == min(length, 10 - start)
    assert all(map(same, training(mixed_sizes())[start:], entered))


def test_a_far_step_costs_no_more_than_the_first() -> None:
    far = training(mixed_sizes(), start_step=10**12, stop_step=10**12 + 1)[0]
    assert far.positions.tolist() == list(range(8 * 10**12, 8 * 10**12 + 8))


def test_a_batch_is_what_its_parts_make() -> None:
    data = noise(20, size=(12, 10))
    third = training(data)[3]
    positions = np.arange(24, 32)
    epochs, indices = Order(length=20, seed=7).indices(positions)
    assert epochs.tolist() == [1] * 8
    assert third.indices.tolist() == indices.tolist()
    assert third.positions.tolist() == positions.tolist()
    assert third.classes.tolist() == (indices % 4).tolist()
    draws = uniform(keys(key(7, "augment"), epochs, indices), EVERYTHING.draws).tolist()
    images = augment_all([data.image(index) for index in indices.tolist()], EVERYTHING, SIZE, 3, draws)
    partners, shares = mix(images, third.classes, positions, EVERYTHING, 7)
    assert torch.equal(third.images, images)
    assert torch.equal(third.targets["partner"], partners)
    assert torch.equal(third.targets["share"], shares)


def test_every_epoch_sees_every_image_once_and_differently() -> None:
    data = noise(12, size=(9, 9))
    batches = training(data, batch=4, stop_step=6, augmentation=Augmentation())
    for epoch in (batches[:3], batches[3:]):
        assert sorted(index for batch in epoch for index in batch.indices.tolist()) == list(range(12))
    images = [
        {int(i): im for b in part for i, im in zip(b.indices, b.images, strict=True)}
        for part in (batches[:3], batches[3:])
    ]
    assert sum(torch.equal(images[0][i], images[1][i]) for i in range(12)) == 0


def test_without_mixing_shares_are_one_and_partners_the_class() -> None:
    batch = training(noise(10), augmentation=Augmentation())[0]
    assert torch.equal(batch.targets["partner"], batch.classes)
    assert (batch.targets["share"] == 1).all()
    assert batch.images.dtype == torch.uint8
    assert batch.images.is_contiguous(memory_format=torch.channels_last)


def test_grey_images_become_three_channels_when_the_model_has_them() -> None:
    data = noise(6, size=SIZE, channels=1)
    grey = training(data, augmentation=NO_AUGMENTATION, stop_step=1)[0]
    colour = training(data, augmentation=NO_AUGMENTATION, stop_step=1, channels=3)[0]
    assert grey.images.shape[1] == 1
    assert torch.equal(colour.images, grey.images.expand(-1, 3, -1, -1))


def test_the_models_own_random_stream_is_not_touched() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    training(noise(10), workers=1, stop_step=2)
    training(noise(10), stop_step=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_that_would_depend_on_the_ranks_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be shared by 3 processes"):
        training(noise(10), world=3)
    with pytest.raises(ConfigError, match=r"need pairs.*multiple of 8"):
        training(noise(10), batch=12, world=4)
    assert len(training(noise(10), batch=12, world=4, augmentation=Augmentation())) == 10


@pytest.mark.parametrize("world", range(1, 8))
@pytest.mark.parametrize("count", [1, 6, 23])
def test_evaluation_sees_every_image_once_with_any_number_of_ranks(world: int, count: int) -> None:
    data = noise(count)
    preprocessing = Preprocessing(image_size=SIZE)
    ranks = [list(evaluation_batches(data, preprocessing, batch=4, rank=rank, world=world)) for rank in range(world)]
    everything = joined([batch for batches in ranks for batch in batches])
    assert everything.indices.tolist() == list(range(count))
    assert everything.classes.tolist() == data.targets.tolist()
    expected = torch.stack([preprocess(data.image(index), preprocessing) for index in range(count)])
    assert torch.equal(everything.images, expected)


def test_evaluation_is_the_same_with_workers() -> None:
    data, preprocessing = mixed_sizes(), Preprocessing(image_size=SIZE)
    here, there = (list(evaluation_batches(data, preprocessing, batch=4, workers=workers)) for workers in (0, 2))
    assert len(here) == len(there) == 7
    assert all(map(same, here, there))
    assert list(evaluation_batches(data.take([]), preprocessing, batch=4)) == []


def broken_set(broken: tuple[int, ...] = (2, 9)) -> Dataset:
    images: list[np.ndarray | bytes] = list(np.random.default_rng(0).integers(0, 256, (12, 9, 9, 3), dtype=np.uint8))
    for index in broken:
        images[index] = b"\xff\xd8\xff not a photo"
    return dataset(images, np.arange(12) % 3)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_image_is_named_in_one_sentence(workers: int) -> None:
    with pytest.raises(ImageError, match=r"^image (2|9): [^\n]* set `skip_broken` to skip such images\.$") as caught:
        training(broken_set(), workers=workers)
    assert caught.value.__cause__ is None
    with pytest.raises(ImageError, match=r"^image 2: [^\n]*$"):
        list(evaluation_batches(broken_set(), Preprocessing(image_size=SIZE), batch=4, workers=workers))


def test_within_the_budget_a_broken_image_is_replaced_in_training() -> None:
    batches = training(broken_set(), skip_broken=Budget(count=2), batch=6, stop_step=8)
    reported = {index for batch in batches for index, _ in batch.broken}
    assert reported == {2, 9}
    for batch in batches:
        assert not {2, 9} & set(batch.indices.tolist())
        assert torch.equal(batch.classes, batch.indices % 3)
    ranks = [
        training(broken_set(), skip_broken=Budget(count=2), batch=6, stop_step=8, rank=rank, world=3)
        for rank in range(3)
    ]
    for whole, *parts in zip(batches, *ranks, strict=True):
        assert torch.equal(whole.images, joined(parts).images)
        assert whole.broken == tuple(found for part in parts for found in part.broken)
    assert all(map(same, batches, training(broken_set(), skip_broken=Budget(count=2), batch=6, stop_step=8, workers=2)))


def test_within_the_budget_a_broken_image_is_left_out_of_evaluation() -> None:
    batches = list(
        evaluation_batches(broken_set(), Preprocessing(image_size=SIZE), batch=3, skip_broken=Budget(count=2))
    )
    assert [batch.indices.tolist() for batch in batches] == [[0, 1], [3, 4, 5], [6, 7, 8], [10, 11]]
    assert [index for batch in batches for index, _ in batch.broken] == [2, 9]


def test_more_broken_images_than_the_budget_end_it_with_their_names() -> None:
    with pytest.raises(InputError, match=r"2 of 12 images .* image (2|9).*image (2|9)"):
        training(broken_set(), skip_broken=Budget(count=1))


def test_a_data_set_of_nothing_but_broken_images_is_refused() -> None:
    with pytest.raises(ImageError, match="20 other images"):
        training(broken_set(tuple(range(12))), skip_broken=Budget(share=1.0))


MAKE = """
import hashlib
from tests.data.test_loader import mixed_sizes, training
digest = hashlib.sha256()
for batch in training(mixed_sizes(), workers=1):
    digest.update(batch.images.contiguous().numpy().tobytes() + batch.targets["share"].numpy().tobytes())
print(digest.hexdigest())
"""


def test_another_process_makes_the_same_batches() -> None:
    digest = hashlib.sha256()
    for batch in training(mixed_sizes()):
        digest.update(batch.images.contiguous().numpy().tobytes() + batch.targets["share"].numpy().tobytes())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "5"}
    done = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == digest.hexdigest()


def test_workers_leave_the_first_signal_to_the_main_process_and_end_with_it() -> None:
    stream = training_batches(
        noise(50), image_size=SIZE, augmentation=EVERYTHING, batch=4, seed=0, stop_step=10_000, workers=2
    )
    next(stream)
    workers = children()
    assert len(workers) == 2
    for worker in workers:
        os.kill(worker, signal.SIGINT)
        os.kill(worker, signal.SIGTERM)
    assert len(list(islice(stream, 20))) == 20
    stream.close()
    limit = time.monotonic() + 20
    while children() and time.monotonic() < limit:
        time.sleep(0.05)
    assert not children()


def test_a_killed_worker_ends_the_stream_with_a_sentence() -> None:
    stream = training_batches(
        noise(50), image_size=SIZE, augmentation=EVERYTHING, batch=4, seed=0, stop_step=100_000, workers=1
    )
    next(stream)
    os.kill(children()[0], signal.SIGKILL)
    with pytest.raises(WorkerError, match="ended from outside"):
        for _ in stream:
            pass


def children() -> list[int]:
    """The running children of this process."""
    return [int(child) for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]


@pytest.mark.slow
def test_memory_of_workers_is_flat_over_twenty_epochs() -> None:
    count = 400
    stream = training_batches(
        noise(count), image_size=SIZE, augmentation=EVERYTHING, batch=20, seed=0, stop_step=20 * count // 20, workers=2
    )
    held: list[int] = []
    for step, _ in enumerate(stream):
        if step % 40 == 39:
            held.append(sum(private(worker) for worker in children()))
    assert len(held) == 10
    assert max(held[5:]) - max(held[:5]) < 2 * 2**20


def private(process: int) -> int:
    """Bytes that only this process holds."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in rollup if line.startswith("Private")) * 1024


def test_a_batch_moves_as_a_whole() -> None:
    batch = training(noise(10), stop_step=1)[0]
    moved = batch.to("meta")
    assert moved.images.device.type == moved.targets["share"].device.type == "meta"
    assert moved.broken == batch.broken


SMALL = View(augmentation=Augmentation(area=(0.1, 0.5), flip=0.0, brightness=0.4), image_size=(5, 7))


def test_further_views_leave_the_first_as_it_is_and_have_draws_of_their_own() -> None:
    data = mixed_sizes()
    alone, together = training(data), training(data, views=(SMALL, SMALL))
    for one, two in zip(alone, together, strict=True):
        assert torch.equal(one.images, two.images)
        assert [tuple(view.shape[2:]) for view in two.views] == [SIZE, (5, 7), (5, 7)]
        assert not torch.equal(two.views[1], two.views[2])
        assert all(torch.equal(one.targets[name], two.targets[name]) for name in one.targets)


def test_a_view_is_what_its_own_draws_make_of_the_same_images() -> None:
    data = noise(20, size=(12, 10))
    third = training(data, views=(SMALL,))[3]
    epochs, indices = Order(length=20, seed=7).indices(np.arange(24, 32))
    draws = uniform(keys(key(7, "augment", 1), epochs, indices), SMALL.augmentation.draws).tolist()
    pictures = [data.image(index) for index in indices.tolist()]
    assert torch.equal(third.views[1], augment_all(pictures, SMALL.augmentation, (5, 7), 3, draws))


@pytest.mark.parametrize("workers", [0, 2])
def test_views_do_not_depend_on_workers_or_ranks(workers: int) -> None:
    data = mixed_sizes()
    here = training(data, views=(SMALL,))
    shared = [training(data, views=(SMALL,), rank=rank, world=2, workers=workers) for rank in range(2)]
    assert all(same(one, joined(list(parts))) for one, *parts in zip(here, *shared, strict=True))


@pytest.mark.parametrize("size", [1, 3, 8, 20])
def test_a_batch_splits_into_pieces_with_all_their_views_and_targets(size: int) -> None:
    batch = training(noise(20), views=(SMALL,), stop_step=1)[0]
    pieces = batch.split(size)
    assert [len(piece) for piece in pieces] == [min(size, 8 - start) for start in range(0, 8, size)]
    assert same(batch, joined(pieces))


@pytest.mark.parametrize(("count", "sizes"), [(1, [8]), (2, [4, 4]), (3, [3, 3, 2]), (5, [2, 2, 2, 1, 1])])
def test_a_batch_is_divided_evenly(count: int, sizes: list[int]) -> None:
    batch = training(noise(20), views=(SMALL,), stop_step=1)[0]
    pieces = batch.divide(count)
    assert [len(piece) for piece in pieces] == sizes
    assert same(batch, joined(pieces))
