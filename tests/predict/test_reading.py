import threading
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.errors import ImageError
from vitrail.predict.reading import prepared_batches, usual_workers


def made(row: int) -> torch.Tensor:
    if row % 5 == 3:
        raise ImageError(f"row {row} is broken")
    return torch.full((3, 2, 4), row % 256, dtype=torch.uint8)


@given(
    rows=st.lists(st.integers(0, 200), max_size=30, unique=True),
    batch=st.integers(1, 9),
    workers=st.integers(0, 4),
    ahead=st.integers(0, 3),
)
def test_every_image_comes_once_in_order_or_is_broken(rows, batch, workers, ahead) -> None:
    batches = list(prepared_batches(made, rows, batch=batch, workers=workers, ahead=ahead))
    assert [row for prepared in batches for row in prepared.rows] == rows
    assert all(len(prepared.rows) == batch for prepared in batches[:-1])
    for prepared in batches:
        good = [row for row in prepared.rows if row % 5 != 3]
        assert set(prepared.broken) == set(prepared.rows) - set(good)
        assert prepared.pixels[:, 0, 0, 0].tolist() == good if good else not len(prepared.pixels)


def test_no_more_is_read_than_was_asked_for_ahead() -> None:
    read: list[int] = []

    def slow(row: int) -> torch.Tensor:
        read.append(row)
        return made(0)

    batches = prepared_batches(slow, range(100), batch=4, workers=2, ahead=1)
    next(batches)
    time.sleep(0.05)
    assert sorted(read) == list(range(8))
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vitrail-read")]


def test_what_is_no_broken_image_ends_the_work() -> None:
    def fail(row: int) -> torch.Tensor:
        if row == 5:
            raise KeyboardInterrupt
        return made(0)

    with pytest.raises(KeyboardInterrupt):
        list(prepared_batches(fail, range(20), batch=4, workers=2, ahead=1))


def test_there_is_at_least_one_worker() -> None:
    assert 1 <= usual_workers() <= 8
