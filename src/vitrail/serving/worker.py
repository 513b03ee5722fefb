"""A worker process: takes work from the server over a socket, one message after the other.

Anything unexpected ends the process: the server starts another one, and tries the work once more. It ends, too, when
the server has gone. Signals that are meant for the server (Ctrl-C, a supervisor's SIGTERM) do not end a worker in the
middle of its work.
"""

import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from vitrail.base.errors import VitrailError
from vitrail.serving.frames import Head, receive, send
from vitrail.serving.settings import ModelSource

if TYPE_CHECKING:
    from vitrail.serving.tasks import Tasks

FAILED = 70
"""The exit code after an unexpected error."""


def main(arguments: list[str]) -> int:
    """Serve the socket whose number is the argument, until it is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=int(arguments[0])) as stream:
        first = receive(stream)
        if first is None:
            return 0
        try:
            tasks = start(first[0])
        except VitrailError as error:
            send(stream, {"refused": str(error)})
            return 0
        except OSError as error:
            send(stream, {"refused": f"{error.filename or 'the model'}: {error.strerror or 'it cannot be read'}."})
            return 0
        send(stream, {"models": {name: tasks.describe(name) for name in tasks.classifiers}})
        while (message := receive(stream)) is not None:
            began = time.perf_counter()
            head, payload = work(tasks, *message)
            send(stream, {**head, "seconds": time.perf_counter() - began}, payload)
    return 0


def start(head: Head) -> "Tasks":
    """Import what computes, and load the models."""
    import torch

    from vitrail.base.memory import keep_freed_memory
    from vitrail.base.processor import settle
    from vitrail.serving.tasks import Tasks

    settle(lambda _: None)
    keep_freed_memory()
    torch.set_num_threads(head["threads"])
    sources = {name: ModelSource(**source) for name, source in head["models"].items()}
    for source in sources.values():
        if isinstance(size := source.reading.get("image_size"), list):  # what JSON makes of a tuple
            source.reading["image_size"] = tuple(size)
    return Tasks.load(sources, max_pixels=head["max_pixels"])


def work(tasks: "Tasks", head: Head, payload: bytearray) -> tuple[Head, bytes]:
    """Do what one message asks for."""
    from vitrail.serving.tasks import batch_of

    match head["do"]:
        case "prepare":
            return tasks.prepare(head["model"], bytes(payload))
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
