import threading
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.base.errors import ImageError
from vitrail.prediction.reading import in_order, read_batch


def made(row: int) -> torch.Tensor:
    if row % 5 == 3:
        raise ImageError(f"row {row} is broken")
    return torch.full((3, 2, 4), row % 256, dtype=torch.uint8)


@given(st.lists(st.integers(0, 200), max_size=30, unique=True))
def test_every_image_of_a_batch_is_there_in_order_or_broken(rows) -> None:
    prepared = read_batch(made, rows)
    good = [row for row in rows if row % 5 != 3]
    assert list(prepared.rows) == rows
    assert set(prepared.broken) == set(rows) - set(good)
    assert prepared.pixels[:, 0, 0, 0].tolist() == good if good else not len(prepared.pixels)


@given(count=st.integers(0, 40), workers=st.integers(1, 5))
def test_results_come_in_order_whoever_is_done_first(count, workers) -> None:
    def work(job: int) -> int:
        time.sleep(0.001 * (job % 3))
        return job * job

    assert list(in_order(work, range(count), workers=workers)) == [job * job for job in range(count)]


def test_no_more_is_begun_than_one_job_for_each_worker_ahead() -> None:
    begun: list[int] = []
    results = in_order(begun.append, range(100), workers=2)
    next(results)
    time.sleep(0.05)
    assert sorted(begun) == list(range(5))
    results.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vitrail-predict")]


def test_workers_compute_with_their_share_and_leave_the_others_alone(two_threads) -> None:  # noqa: ARG001
    assert set(in_order(lambda _: torch.get_num_threads(), range(8), workers=2)) == {1}
    assert torch.get_num_threads() == 2
    elsewhere: list[int] = []
    thread = threading.Thread(target=lambda: elsewhere.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert elsewhere == [2]


def test_what_is_no_broken_image_ends_the_work() -> None:
    def fail(job: int) -> int:
        if job == 5:
            raise ZeroDivisionError
        return job

    with pytest.raises(ZeroDivisionError):
        list(in_order(fail, range(20), workers=2))
