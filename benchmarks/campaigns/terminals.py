"""Commands of Vitrail in forked processes, on a pseudo-terminal or with their output in files.

A process that has imported torch once is forked, and the fork runs commands one after the other for as long as they are
refused and leave everything as it was; after one that did something, a new one is forked. One that is still at work
after a while is interrupted as Ctrl-C does, and must end soon after that. There is no network.
"""

import errno
import json
import os
import pty
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitrail.cli.main import main as vitrail

PATIENCE = 2.0
"""Seconds of computing after which a command is interrupted; more for one that may wait longer."""
WAITING = 10.0
"""Seconds by the clock after which it is, on a machine without other work."""
LONGEST = 5.0
"""Seconds in which it must then end."""
MEMORY = 6 * 2**30
"""Bytes of address space beyond what the process that is forked has."""
REFUSED = 2
Words = tuple[Sequence[str], bool, float]
"""A command, whether it is on a terminal, and the seconds after which it is interrupted."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a command ended."""

    code: int
    """Its exit code, below 0 for a signal."""
    out: str = ""
    """What it wrote to stdout; on a terminal everything."""
    err: str = ""
    """What it wrote to stderr."""
    seconds: float
    interrupted: bool = False
    hung: bool = False
    changes: dict[str, bool]
    """What became of the files around it; what is true is bad."""
    changed: bool = True
    """Whether anything at all did."""


def run_all(
    commands: Sequence[Words],
    folder: Path,
    *,
    begin: Callable[[], Any],
    compare: Callable[[Any, Sequence[str]], tuple[dict[str, bool], bool]],
) -> Iterator[Ending]:
    """Run commands in a folder until one has done something, and yield how each ended.

    `begin` notes the state of the folder, `compare` returns what is bad about what became of it, and whether anything
    has changed.
    """
    origin = begin()
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _child(commands, folder, writing, begin, compare)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        rest = b""
        for words, _, waiting in commands:
            line, rest, interrupted, hung, seconds = _await(pipe, rest, pid, waiting)
            if line is not None:
                ending = replace(Ending(**json.loads(line)), interrupted=interrupted)
            else:  # it has died, or was killed
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                changes, _ = compare(origin, words)
                yield Ending(code=code, seconds=seconds, interrupted=interrupted, hung=hung, changes=changes)
                return
            yield ending
            if ending.code != REFUSED or ending.changed:
                break
    with suppress(ProcessLookupError):  # processes that outlive the command
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _await(pipe: Any, rest: bytes, pid: int, waiting: float) -> tuple[bytes | None, bytes, bool, bool, float]:
    """Wait for the line about a command; return it or None, further bytes, whether it was interrupted or hung."""
    began, computed, interrupted = time.monotonic(), _computed(pid), 0.0
    slower = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # by what else the machine does
    while b"\n" not in rest:
        if select.select([pipe], [], [], 0.1)[0]:
            some = os.read(pipe.fileno(), 2**20)
            if not some:
                return None, b"", bool(interrupted), False, time.monotonic() - began
            rest += some
            continue
        elapsed = time.monotonic() - began
        busy = elapsed > PATIENCE and _computed(pid) - computed > PATIENCE * max(waiting / WAITING, 1.0)
        if not interrupted and (elapsed > waiting * slower or busy):
            interrupted = elapsed
            os.kill(pid, signal.SIGINT)
        if interrupted and elapsed - interrupted > LONGEST * slower:
            return None, b"", True, True, elapsed
    line, _, rest = rest.partition(b"\n")
    return line, rest, bool(interrupted), False, time.monotonic() - began


def _computed(pid: int) -> float:
    """Return the seconds that a process has computed."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Let no command reach another machine."""
    if event == "socket.getaddrinfo" or (event == "socket.connect" and arguments[0].family != socket.AF_UNIX):
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))


def _child(commands: Sequence[Words], folder: Path, pipe: int, begin: Callable[[], Any], compare: Any) -> None:
    """Run commands with streams of their own, and end without anything of the parent's."""
    try:
        os.setsid()
        os.chdir(folder)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
        sys.addaudithook(refuse_network)
        for words, terminal, _ in commands:
            began, before = time.monotonic(), begin()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code, out, err = _on_terminal(words) if terminal else _in_files(words, folder)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            changes, changed = compare(before, words)
            texts = {"out": out.decode(errors="surrogateescape"), "err": err.decode(errors="surrogateescape")}
            row = {"code": code, "seconds": time.monotonic() - began, "changes": changes, "changed": changed}
            line = json.dumps(row | texts).encode() + b"\n"
            while line:
                line = line[os.write(pipe, line) :]
            if code != REFUSED or changed:
                break
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _call(words: Sequence[str], handles: Sequence[int]) -> int:
    """Run one command with these handles as its streams."""
    code = 70
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in enumerate("rww"))  # noqa: SIM115
    try:
        code = vitrail(list(words))
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except BaseException:
        traceback.print_exc()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _in_files(words: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Run a command with its output in files, as pipes without a reader that waits; stdin is empty."""
    files = [folder / ".stdout", folder / ".stderr"]
    handles = [
        os.open(os.devnull, os.O_RDONLY),
        *(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for file in files),
    ]
    code = _call(words, handles)
    for handle in handles:
        os.close(handle)
    texts = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()
    return code, texts[0], texts[1]


def _on_terminal(words: Sequence[str]) -> tuple[int, bytes, bytes]:
    """Run a command on a terminal that a thread reads."""
    reader, writer = pty.openpty()
    screen = bytearray()

    def read() -> None:
        with suppress(OSError):  # the last writer has closed it
            while some := os.read(reader, 65536):
                screen.extend(some)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    code = _call(words, [writer] * 3)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    os.close(writer)
    thread.join(1.0)
    os.close(reader)
    return code, bytes(screen), b""
