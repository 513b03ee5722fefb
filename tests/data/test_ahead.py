"""Items that are made ahead: in order, one beyond the one in use, errors in their place, nothing left behind."""

import threading
import time

import pytest
import torch

from vitrail.data.ahead import made_ahead


class Squares:
    """Squares, and which were made."""

    def __init__(self, broken: int = -1) -> None:
        self.broken, self.made, self.threads = broken, [], set()

    def __getitem__(self, number: int) -> int:
        if number == self.broken:
            raise ValueError(f"{number} is broken")
        self.made.append(number)
        self.threads.add((threading.current_thread().name, torch.get_num_threads()))
        return number * number


def _wait_for(squares: Squares, count: int) -> None:
    until = time.monotonic() + 10
    while len(squares.made) < count and time.monotonic() < until:
        time.sleep(0.001)


def test_items_come_in_order_and_one_is_made_ahead_by_a_thread_with_one_core() -> None:
    squares, before = Squares(), torch.get_num_threads()
    items = made_ahead(squares.__getitem__, range(3, 8))
    assert next(items) == 9
    _wait_for(squares, 2)
    time.sleep(0.05)
    assert squares.made == [3, 4]
    assert list(items) == [16, 25, 36, 49]
    assert squares.threads == {("vitrail-ahead", 1)}
    assert torch.get_num_threads() == before


def test_an_error_is_raised_where_its_item_would_have_been() -> None:
    items = made_ahead(Squares(broken=2).__getitem__, range(5))
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(ValueError, match="2 is broken"):
        next(items)


def test_who_stops_early_leaves_no_thread() -> None:
    items = made_ahead(Squares().__getitem__, range(1000))
    next(items)
    items.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "vitrail-ahead"]
    assert list(made_ahead(Squares().__getitem__, range(0))) == []
