"""Real processes: a server in the background, and the command."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

import vitrail
from tests.serving.making import parts, photo, save_model
from vitrail.serving.address import bind
from vitrail.serving.settings import ServeSettings

SECONDS = 120.0
"""More than starting a worker takes on a busy machine."""


@pytest.fixture(scope="module")
def server(tiny_file):
    with vitrail.serve(tiny_file, port=0, workers=1, note=str) as running:
        yield running


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def workers_of_this_process() -> list[int]:
    """The workers, which are children of a process that a thread of this one has started."""
    pids = [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    nurseries = [pid for pid in pids if b"vitrail.serving.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return [worker for nursery in nurseries for worker in children(nursery)]


def wait_until(condition, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_server_answers_as_predict_does(server, tiny_file) -> None:
    answer = httpx.post(f"{server.url}/v1/predict", files=parts(photo(), b"x"), timeout=SECONDS).json()
    wanted = vitrail.predict(tiny_file, [photo()])[0]
    assert [entry["label"] for entry in answer["results"][0]["top"]] == [label for label, _ in wanted.top]
    assert answer["results"][1]["error"]["status"] == 415
    assert server.url in repr(server)
    assert list(server.models) == ["tiny"]


def test_what_is_odd_about_a_model_is_said_before_it_listens(tmp_path) -> None:
    lines: list[str] = []
    path = save_model(tmp_path / "m.safetensors", labels=None)
    with vitrail.serve(path, port=0, workers=1, note=lines.append, log=lines.append):
        pass
    assert "no class names, so classes are numbers" in lines[0]
    assert '"listening"' in lines[1]


def test_a_killed_worker_is_replaced_and_requests_go_on(server) -> None:
    (worker,) = workers_of_this_process()
    os.kill(worker, signal.SIGKILL)
    answer = httpx.post(f"{server.url}/v1/predict", files=parts(photo()), timeout=SECONDS)
    assert answer.status_code == 200
    assert workers_of_this_process() != [worker]
    assert "vitrail_worker_restarts_total 1" in httpx.get(f"{server.url}/metrics").text


def test_a_connection_that_never_ends_its_head_is_closed(server, monkeypatch) -> None:
    from vitrail.serving import listener

    monkeypatch.setattr(listener, "HEAD_SECONDS", 3.0)
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as stream:
        stream.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += stream.recv(1000)
        assert b"200" in answer
        stream.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        began = time.monotonic()
        assert stream.recv(1000) == b""
    assert time.monotonic() - began < 20


def test_the_port_of_another_program_is_refused_before_anything_is_loaded(server) -> None:
    with pytest.raises(vitrail.ConfigError, match=r"127\.0\.0\.1:\d+ cannot be used"):
        vitrail.serve("missing.safetensors", port=server.port)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_no_part_of_an_answer_waits_until_the_client_has_confirmed_another(host) -> None:
    async def nodelay() -> int:
        settings: list[int] = []

        async def taken(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            settings.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        try:
            bound = bind(ServeSettings(host=host, port=0))
        except vitrail.ConfigError:
            pytest.skip("this machine has no such address")
        async with await asyncio.start_server(taken, sock=bound):
            reader, writer = await asyncio.open_connection(*bound.getsockname()[:2])
            await reader.read()
            writer.close()
        return settings[0]

    assert asyncio.run(nodelay())


def command(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "vitrail", "serve", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_damaged_model_is_one_sentence(tmp_path) -> None:
    path = tmp_path / "broken.safetensors"
    path.write_bytes(b"not a model")
    process = command(str(path), "--port", "0", "--workers", "1")
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert "broken.safetensors" in errors


@pytest.mark.slow
def test_the_command_reloads_finishes_what_is_running_and_ends_with_0(tmp_path) -> None:
    path = save_model(tmp_path / "m.safetensors", seed=1)
    patience = ("--timeout", "300", "--grace", "300")
    process = command(str(path), "--port", "0", "--workers", "1", "--json", *patience)
    events: list[dict] = []

    def read() -> None:
        for line in process.stderr:
            if line.startswith("{"):
                events.append(json.loads(line))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        wait_until(lambda: any(event["event"] == "listening" for event in events))
        url = events[0]["url"]
        before = httpx.get(f"{url}/v1/model").json()["digest"]
        save_model(path, seed=2)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: any(event["event"] == "reloaded" for event in events))
        assert httpx.get(f"{url}/v1/model").json()["digest"] != before
        answers: list[httpx.Response] = []
        slow = threading.Thread(
            target=lambda: answers.append(
                httpx.post(
                    f"{url}/v1/predict?explain=integrated-gradients", files=parts(*map(photo, range(2))), timeout=300
                )
            )
        )
        slow.start()
        wait_until(lambda: "vitrail_pending_images 0" not in httpx.get(f"{url}/metrics").text or answers)
        process.send_signal(signal.SIGTERM)
        slow.join()
        assert process.wait(SECONDS) == 0
        assert answers[0].status_code == 200
        assert json.load(process.stdout) == {"url": url, "models": ["m"]}
    finally:
        process.kill()
        reader.join()
        process.stdout.close()
        process.stderr.close()
    assert [event["event"] for event in events][-2:] == ["stopping", "stopped"] or events[-1]["event"] == "stopped"
    assert not any("secret" in str(event) for event in events)
