"""Worker processes: a parent that has loaded the models forks one for each socket that it is handed.

A worker does one message after the other. Anything unexpected ends it: the server has another one made, and tries the
work once more. It ends, too, when the server has gone. Signals that are meant for the server (Ctrl-C, a supervisor's
SIGTERM) do not end a worker in the middle of its work.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vitrail.base.errors import VitrailError
from vitrail.serving.frames import Head, receive, send
from vitrail.serving.settings import ModelSource

if TYPE_CHECKING:
    from vitrail.serving.tasks import Tasks

FAILED = 70
"""The exit code after an unexpected error."""


def main(arguments: list[str]) -> int:
    """Load the models, then fork a worker for each socket that comes over the one whose number is the argument."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets workers that have ended
    with socket.socket(fileno=int(arguments[0])) as control:
        first = receive(control)
        if first is None:
            return 0
        # no pool of threads here, which a fork would not survive; a worker sets its own number
        tasks, refusal = attempt(first[0], threads=1) if forks_loaded(first[0]) else (None, None)
        send(control, {} if refusal is None else {"refused": refusal})
        while (sockets := socket.recv_fds(control, 1, 1))[0]:
            (handle,) = sockets[1]
            if os.fork():
                os.close(handle)
                continue
            control.close()
            return serve(socket.socket(fileno=handle), first[0], tasks)
    return 0


def forks_loaded(head: Head) -> bool:
    """Return whether the models can be loaded before a fork: a GPU, or threads of another runtime, survive none."""
    from vitrail.runtime.exported import is_exported

    readings = [source["reading"] for source in head["models"].values()]
    return (
        all(
            reading.get("engine") in (None, "torch") and reading.get("device", "auto") in ("auto", "cpu")
            for reading in readings
        )
        and (head["threads"] == 1 or not any(is_exported(source["path"]) for source in head["models"].values()))
        and not Path("/dev/nvidiactl").exists()
    )


def attempt(head: Head, *, threads: int) -> "tuple[Tasks | None, str | None]":
    """Load the models; or return the sentence that says why not."""
    try:
        return start(head, threads=threads), None
    except VitrailError as error:
        return None, str(error)
    except OSError as error:
        return None, f"{error.filename or 'the model'}: {error.strerror or 'it cannot be read'}."


def serve(stream: socket.socket, head: Head, tasks: "Tasks | None") -> int:
    """Put an image through each model, then work until the socket is closed."""
    import torch

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    torch.set_num_threads(head["threads"])
    with stream:
        if receive(stream) is None:
            return 0
        tasks, refusal = (tasks, None) if tasks is not None else attempt(head, threads=head["threads"])
        if tasks is None:
            send(stream, {"refused": refusal})
            return 0
        try:
            for name in tasks.classifiers:
                tasks.probe(name)
        except VitrailError as error:
            send(stream, {"refused": str(error)})
            return 0
        send(stream, {"models": {name: tasks.describe(name) for name in tasks.classifiers}, "pid": os.getpid()})
        threads = head["threads"]
        while (message := receive(stream)) is not None:
            if threads != (threads := message[0].pop("threads", threads)):
                torch.set_num_threads(threads)
            began = time.perf_counter()
            answer, payload = work(tasks, *message)
            send(stream, {**answer, "seconds": time.perf_counter() - began}, payload)
    return 0


def start(head: Head, *, threads: int) -> "Tasks":
    """Import what computes, and load the models, some of which keep the number of threads for good."""
    import torch

    from vitrail.base.memory import keep_freed_memory
    from vitrail.base.processor import settle
    from vitrail.serving.tasks import Tasks

    settle(lambda _: None)
    keep_freed_memory()
    torch.set_num_threads(threads)
    sources = {name: ModelSource(**source) for name, source in head["models"].items()}
    for source in sources.values():
        if isinstance(size := source.reading.get("image_size"), list):  # what JSON makes of a tuple
            source.reading["image_size"] = tuple(size)
    return Tasks.load(sources, max_pixels=head["max_pixels"])


def prepare(tasks: "Tasks", head: Head, payload: memoryview) -> tuple[Head, bytes]:
    """Decode the images of a message one after the other, each with its own time and its own faults."""
    images: list[Head] = []
    content: list[bytes] = []
    at = 0
    for model, size in zip(head["models"], head["sizes"], strict=True):
        began = time.perf_counter()
        facts, pixels = tasks.prepare(model, bytes(payload[at : at + size]))
        images.append({**facts, "bytes": len(pixels), "seconds": time.perf_counter() - began})
        content.append(pixels)
        at += size
    return {"images": images}, b"".join(content)


def work(tasks: "Tasks", head: Head, payload: bytearray) -> tuple[Head, bytes]:
    """Do what one message asks for."""
    from vitrail.serving.tasks import batch_of

    match head["do"]:
        case "prepare":
            return prepare(tasks, head, memoryview(payload))
        case "compute":
            pixels = batch_of(payload, len(head["tops"]), tasks.classifiers[head["model"]])
            return tasks.compute(head["model"], pixels, head["tops"], head["features"])
        case "explain":
            return tasks.explain(head["model"], batch_of(payload, 1, tasks.classifiers[head["model"]]), head)
        case _:
            for name in tasks.classifiers:
                tasks.probe(name)
            return {}, b""


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except (BrokenPipeError, ConnectionResetError):  # the server has gone
        code = 0
    except Exception:  # the server sees that the process has ended; what it worked on is not for logs
        code = FAILED
    os._exit(code)  # at once: the server waits, and there is nothing to put in order
