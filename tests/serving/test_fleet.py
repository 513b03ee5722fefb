import asyncio
import itertools
import time

import pytest

from tests.serving.making import parts, photo, save_model
from vitrail.serving.fleet import next_pause
from vitrail.serving.jobs import FairQueue, Item, Options, Ticket
from vitrail.serving.nursery import WorkerEndedError


def ticket(seconds: float = 60.0) -> Ticket:
    return Ticket(model="tiny", options=Options(), deadline=time.monotonic() + seconds)


def items(owner: Ticket, count: int) -> list[Item]:
    loop = asyncio.new_event_loop()
    try:
        return [Item(ticket=owner, encoded=b"", outcome=loop.create_future()) for _ in range(count)]
    finally:
        loop.close()


def test_a_request_with_many_images_does_not_hold_up_one_with_few() -> None:
    queue, large, small = FairQueue(), ticket(), ticket()
    for item in (*items(large, 50), *items(small, 2)):
        queue.put(item)
    order = [queue.take().ticket for _ in range(5)]
    assert order == [large, small, large, small, large]
    assert len(queue) == 47


def test_images_of_a_request_stay_in_order_and_leave_together() -> None:
    queue, one, two = FairQueue(), ticket(), ticket()
    first, second = items(one, 3), items(two, 1)
    for item in (*first, *second):
        queue.put(item)
    again = queue.take()
    queue.put(again, first=True)
    assert queue.take() is first[0]
    assert queue.discard(one) == first[1:]
    assert list(queue) == second
    assert len(queue) == 1


def test_a_request_past_its_deadline_is_dead() -> None:
    queue, late = FairQueue(), ticket(-1.0)
    queue.put(items(late, 1)[0])
    assert queue.dead() == [late]
    assert FairQueue().oldest == float("inf")


def test_a_worker_that_ends_is_replaced_and_its_images_are_tried_once_more(bench) -> None:
    deaths = []

    async def scenario(client, service):
        call = bench.member.call

        async def fragile(self, head, payload, seconds):
            if head["do"] == "compute" and not deaths:
                deaths.append(len(head["tops"]))
                raise WorkerEndedError
            return await call(self, head, payload, seconds)

        bench.member.call = fragile
        answers = await asyncio.gather(*(client.post("/v1/predict", files=parts(photo(seed))) for seed in range(6)))
        await asyncio.sleep(0.6)
        return [answer.status_code for answer in answers], service.fleet.ready, service.watch.restarts.total()

    statuses, ready, restarts = bench.run(scenario)
    assert statuses == [200] * 6
    assert (ready, restarts) == (2, 1)


def test_a_killed_worker_is_replaced_at_once_and_one_that_cannot_work_ever_more_slowly() -> None:
    assert [next_pause(pause, 0.3) for pause in (0.0, 0.25, 10.0)] == [0.0, 0.0, 0.0]
    pauses = list(itertools.accumulate(range(8), lambda pause, _: next_pause(pause, 0.0), initial=0.0))
    assert pauses == [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@pytest.mark.parametrize("steps", [("prepare",), ("compute",), ("prepare", "compute")], ids="-".join)
def test_an_image_is_tried_once_more_and_not_twice(bench, steps) -> None:
    ends = list(steps) if len(steps) > 1 else [*steps, *steps]

    async def scenario(client, _):
        call = bench.member.call

        async def fragile(self, head, payload, seconds):
            if ends and head["do"] == ends[0]:
                ends.pop(0)
                raise WorkerEndedError
            return await call(self, head, payload, seconds)

        bench.member.call = fragile
        return await client.post("/v1/predict", files=parts(photo()))

    answer = bench.run(scenario)
    assert ends == []
    assert answer.status_code == 503
    assert "tried" in answer.json()["error"]["message"]


def test_an_image_that_ends_workers_fails_alone(bench) -> None:
    deadly = photo(99)

    async def scenario(client, _):
        bench.member.deadly = deadly
        answers = await asyncio.gather(
            *(client.post("/v1/predict", files=parts(image)) for image in (photo(1), deadly, photo(2)))
        )
        return [answer.status_code for answer in answers]

    assert bench.run(scenario) == [200, 503, 200]


def test_new_models_take_over_while_old_requests_are_finished_by_the_old(bench, tmp_path) -> None:
    path = save_model(tmp_path / "m.safetensors", seed=1)
    bench.member.pause = 0.1

    async def scenario(client, service):
        before = asyncio.ensure_future(client.post("/v1/predict", files=parts(*map(photo, range(6)))))
        await asyncio.sleep(0.05)
        save_model(path, seed=2)
        from tests.serving.making import _tasks

        _tasks.cache_clear()
        await service.reload()
        after = await client.post("/v1/predict", files=parts(photo()))
        old = await before
        await asyncio.sleep(0.1)
        return old, after, len(service._retiring)

    old, after, retiring = bench.run(scenario, models={"m": path}, workers=1)
    assert old.status_code == after.status_code == 200
    assert old.json()["model"]["digest"] != after.json()["model"]["digest"]
    assert retiring == 0


def test_a_worker_that_finds_another_model_in_the_file_answers_nothing(bench, tmp_path) -> None:
    path = save_model(tmp_path / "m.safetensors", seed=1)

    async def scenario(client, service):
        from tests.serving.making import _tasks

        before = await client.post("/v1/predict", files=parts(photo()))
        save_model(path, seed=2)
        _tasks.cache_clear()
        service.fleet.members[0].idle = False
        service.fleet.members[0].ended.set()  # and the process that new workers come from has ended too
        await asyncio.sleep(0.6)
        after = [await client.post("/v1/predict", files=parts(photo())) for _ in range(4)]
        return before.json()["results"], [answer.json()["results"] for answer in after], service.fleet.ready

    before, after, ready = bench.run(scenario, models={"m": path})
    assert after == [before] * 4
    assert ready == 1
    assert any('"model_changed"' in line for line in bench.lines)


def test_a_model_that_cannot_be_read_again_leaves_the_old_one(bench, tmp_path) -> None:
    path = save_model(tmp_path / "m.safetensors")

    async def scenario(client, service):
        from tests.serving.making import _tasks

        path.write_bytes(b"damaged")
        _tasks.cache_clear()
        reload = await client.post("/v1/reload", headers={"authorization": f"Bearer {'k' * 32}"})
        service.sources["m"]
        answer = await client.post("/v1/predict", files=parts(photo()), headers={"x-api-key": "k" * 32})
        return reload, answer

    reload, answer = bench.run(scenario, models={"m": path}, keys=(b"k" * 32,))
    assert reload.status_code == 422
    assert str(path) not in reload.text
    assert answer.status_code == 200
    assert any('"reload_failed"' in line for line in bench.lines)


def test_readiness_needs_a_pass_and_a_worker(bench) -> None:
    async def scenario(client, service):
        for member in service.fleet.members:
            member.last_pass = -1000.0
        ready = await client.get("/readyz")
        probes = [call["do"] for call in bench.member.calls]
        for member in service.fleet.members:
            member.models, member.idle = {}, False
        return ready, probes, await client.get("/readyz")

    ready, probes, not_ready = bench.run(scenario)
    assert probes == ["probe", "probe"]
    assert ready.json()["status"] == "ready"
    assert not_ready.status_code == 503


@pytest.mark.parametrize("wait", [0.0, 50.0])
def test_an_image_alone_does_not_wait_for_others(bench, wait) -> None:
    async def scenario(client, _):
        began = time.perf_counter()
        await client.post("/v1/predict", files=parts(photo()))
        return time.perf_counter() - began

    bench.run(scenario, batch_wait=wait)
    waits = [call for call in bench.member.calls if call["do"] == "compute"]
    assert [call["tops"] for call in waits] == [[5]]
