"""Which image comes when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.arrays import dataset, noise
from vitrail.base.errors import ConfigError, InputError
from vitrail.data.sampler import Order, batch_positions, evaluation_shard, training_order


@given(st.integers(1, 300), st.integers(0, 2**40), st.integers(0, 1000))
def test_every_epoch_visits_every_image_once(length: int, seed: int, epoch: int) -> None:
    epochs, indices = Order(length=length, seed=seed).indices(np.arange(epoch * length, (epoch + 1) * length))
    assert set(epochs.tolist()) == {epoch}
    np.testing.assert_array_equal(np.sort(indices), np.arange(length))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    def order(seed: int, epoch: int) -> np.ndarray:
        return Order(length=1000, seed=seed).indices(np.arange(epoch * 1000, (epoch + 1) * 1000))[1]

    for other in (order(0, 1), order(1, 0)):
        assert (order(0, 0) == other).sum() < 10


def test_a_position_beyond_any_epoch_costs_no_more_than_the_first() -> None:
    epochs, indices = Order(length=300_000_000, seed=0).indices(np.array([0, 10**15]))
    assert epochs.tolist() == [0, 10**15 // 300_000_000]
    assert 0 <= indices.min() <= indices.max() < 300_000_000


def test_balanced_every_block_has_every_class_once_and_every_image_comes_round() -> None:
    targets = np.repeat([0, 1, 2, 4], [50, 7, 1, 20])  # nothing is of class 3
    order = training_order(dataset([np.zeros((2, 2), np.uint8)] * 78, targets), seed=3, balanced=True)
    epochs, indices = order.indices(np.arange(4 * 100))
    assert all(set(block) == {0, 1, 2, 4} for block in targets[indices].reshape(100, 4))
    counts = np.bincount(indices, minlength=78)
    np.testing.assert_array_equal(counts[:50], 2)
    assert set(counts[50:57]) <= {14, 15}
    assert counts[57] == 100
    np.testing.assert_array_equal(counts[58:], 5)
    assert len(set(zip(epochs.tolist(), indices.tolist(), strict=True))) == 400  # no image twice with one augmentation


def test_balanced_a_class_stands_anywhere_in_its_block() -> None:
    order = training_order(noise(40, classes=4), seed=0, balanced=True)
    first = order.indices(np.arange(0, 4 * 4000, 4))[1] % 4
    assert np.abs(np.bincount(first, minlength=4) / 4000 - 0.25).max() < 0.03


def test_balance_needs_labels_and_training_needs_images() -> None:
    with pytest.raises(InputError, match="without a label"):
        training_order(dataset([np.zeros((2, 2), np.uint8)] * 2, np.array([0, -1])), seed=0, balanced=True)
    with pytest.raises(InputError, match="no images"):
        training_order(noise(4).take([]), seed=0)


@given(st.integers(0, 10**12), st.integers(1, 8), st.sampled_from([1, 2, 4, 5]))
def test_the_slices_of_all_ranks_are_the_batch(step: int, share: int, world: int) -> None:
    batch = share * world
    slices = [batch_positions(step, batch=batch, rank=rank, world=world) for rank in range(world)]
    np.testing.assert_array_equal(np.concatenate(slices), np.arange(step * batch, (step + 1) * batch))


def test_a_batch_that_cannot_be_shared_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a batch of 10 cannot be shared by 4 processes.* 12"):
        batch_positions(0, batch=10, world=4)


@given(st.integers(0, 1000), st.integers(1, 7))
def test_shards_have_every_image_once_and_differ_by_one_at_most(length: int, world: int) -> None:
    shards = [evaluation_shard(length, rank=rank, world=world) for rank in range(world)]
    assert [index for shard in shards for index in shard] == list(range(length))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
