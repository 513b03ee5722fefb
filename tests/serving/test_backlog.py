import asyncio
import time

import pytest

from vitrail.serving.backlog import SMALL, Backlog
from vitrail.serving.jobs import Item, Options, Ticket
from vitrail.serving.settings import ServeSettings
from vitrail.serving.works import Compute, Explain, Prepare


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def item(loop, size: int = 1000, **options) -> Item:
    ticket = Ticket(model="m", options=Options(**options), deadline=time.monotonic() + 60)
    return Item(ticket=ticket, encoded=bytes(size), outcome=loop.create_future())


def backlog(**settings) -> Backlog:
    return Backlog(["m"], ServeSettings(**{"batch_wait": 1000.0} | settings))


def never(_: float) -> None:
    raise AssertionError("nothing is worth waiting for")


def test_free_workers_share_what_there_is(loop) -> None:
    waiting = backlog()
    for _ in range(4):
        waiting.decoding.put(item(loop))
    first = waiting.next([], 2, never)
    second = waiting.next([first], 1, never)
    assert [len(work.items) for work in (first, second)] == [2, 2]
    for decoded in (*first.items, *second.items):
        waiting.put_decoded(decoded)
    batches = [waiting.next([], idle, never) for idle in (2, 1)]
    assert [(type(work), len(work.items)) for work in batches] == [(Compute, 2), (Compute, 2)]
    assert len(waiting) == 0


def test_one_free_worker_takes_a_full_batch(loop) -> None:
    waiting = backlog(batch=4)
    for _ in range(6):
        waiting.decoding.put(item(loop))
    assert len(waiting.next([], 1, never).items) == 4
    assert len(waiting) == 2


@pytest.mark.parametrize("large", [0, 1, 2])
def test_a_large_image_is_decoded_alone(loop, large) -> None:
    waiting = backlog()
    for place in range(3):
        waiting.decoding.put(item(loop, SMALL if place == large else 1000))
    sizes = []
    while len(waiting):
        sizes.append([len(image.encoded) for image in waiting.next([], 1, never).items])
    assert [SMALL] in sizes
    assert sum(map(len, sizes)) == 3


def test_a_decoded_image_waits_for_small_ones_but_not_for_a_large_one(loop) -> None:
    for size, kind in ((1000, Prepare), (SMALL + 1, Compute)):
        waiting = backlog()
        waiting.put_decoded(item(loop))
        waiting.decoding.put(item(loop, size))
        assert isinstance(waiting.next([], 1, never), kind)


def test_a_free_worker_waits_while_another_decodes_and_no_longer_than_it_may(loop) -> None:
    waiting, waits = backlog(batch_wait=20.0), []
    waiting.put_decoded(item(loop))
    decoding = Prepare([item(loop)])
    assert waiting.next([decoding], 1, waits.append) is None
    assert 0 < waits[0] <= 0.02
    time.sleep(0.02)
    assert isinstance(waiting.next([decoding], 1, never), Compute)


def test_an_image_over_which_a_worker_ended_goes_alone(loop) -> None:
    waiting, images = backlog(), [item(loop) for _ in range(3)]
    images[1].deaths = 1
    for image in images:
        waiting.decoding.put(image)
    assert [len(waiting.next([], 1, never).items) for _ in range(3)] == [1, 1, 1]
    for image in images:
        waiting.put_decoded(image)
    assert [len(waiting.next([], 1, never).items) for _ in range(3)] == [1, 1, 1]


def test_an_explanation_is_computed_alone_and_what_was_left_undone_comes_first(loop) -> None:
    waiting = backlog()
    for _ in range(2):
        waiting.put_decoded(item(loop, explain="auto"))
    work = waiting.next([], 1, never)
    assert isinstance(work, Explain)
    (undone,) = work.items
    waiting.put_back(undone, work)
    assert waiting.explaining.first is undone


def test_cores_without_work_help_the_others_but_one_is_left_for_the_server(monkeypatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)))
    assert [ServeSettings().threads_for(works) for works in (1, 2, 3, 4, 9)] == [3, 1, 1, 1, 1]
    assert [ServeSettings(workers=2).threads_for(works) for works in (1, 2, 9)] == [3, 2, 2]
    assert ServeSettings(threads=1).threads_for(1) == 1
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(2)))
    assert [ServeSettings().threads_for(works) for works in (1, 2)] == [1, 1]
    assert ServeSettings(workers=1).threads_for(1) == 2
