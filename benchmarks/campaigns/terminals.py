"""Commands of Vitrail in forked processes, on a pseudo-terminal or with their output in files.

A process that has imported torch once is forked for each command, so that a command takes as long as its work. One that
is still at work after a while is interrupted as Ctrl-C does, and must end soon after that. There is no network.
"""

import errno
import os
import pty
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.cli.main import main as vitrail

PATIENCE = 3.0
"""Seconds of computing after which a command is interrupted."""
WAITING = 10.0
"""Seconds by the clock after which it is, on a machine without other work."""
LONGEST = 5.0
"""Seconds in which it must then end."""
MEMORY = 6 * 2**30
"""Bytes of address space beyond what the process that is forked has."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a command ended."""

    code: int
    """Its exit code, below 0 for a signal."""
    out: str
    """What it wrote to stdout; on a terminal everything."""
    err: str
    """What it wrote to stderr."""
    seconds: float
    interrupted: bool
    hung: bool


def run(words: Sequence[str], folder: Path, *, terminal: bool) -> Ending:
    """Run one command in a folder."""
    began = time.monotonic()
    files = [folder / ".stdout", folder / ".stderr"]
    reader, writer = pty.openpty() if terminal else (-1, -1)
    pid = os.fork()
    if not pid:
        _child(words, folder, files, writer)
    if terminal:
        os.close(writer)
    interrupted, hung = 0.0, False
    slower = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # by what else the machine does
    screen = bytearray()
    while True:
        screen += _read(reader) if terminal else _rest()
        ended, status = os.waitpid(pid, os.WNOHANG)
        elapsed = time.monotonic() - began
        if ended:
            break
        if not interrupted and (elapsed > WAITING * slower or (elapsed > PATIENCE and _computed(pid) > PATIENCE)):
            interrupted = elapsed
            os.kill(pid, signal.SIGINT)
        if interrupted and elapsed - interrupted > LONGEST * slower and not hung:
            hung = True
            os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):  # processes that outlive the command
        os.killpg(pid, signal.SIGKILL)
    if terminal:
        screen += _read(reader)
        os.close(reader)
    out, err = (screen, b"") if terminal else (file.read_bytes() for file in files)
    for file in files:
        file.unlink(missing_ok=True)
    texts = (bytes(text).decode(errors="surrogateescape") for text in (out, err))
    ending = dict(zip(("out", "err"), texts, strict=True))
    code = os.waitstatus_to_exitcode(status)
    return Ending(code=code, seconds=time.monotonic() - began, interrupted=bool(interrupted), hung=hung, **ending)


def _computed(pid: int) -> float:
    """Return the seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rest() -> bytes:
    time.sleep(0.002)
    return b""


def _read(reader: int) -> bytes:
    """Return what a terminal shows by now."""
    block = b""
    with suppress(OSError):  # the command has closed it
        while select.select([reader], [], [], 0.005)[0] and (some := os.read(reader, 65536)):
            block += some
    return block


def refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Let no command reach another machine."""
    if event == "socket.getaddrinfo" or (event == "socket.connect" and arguments[0].family != socket.AF_UNIX):
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))


def _child(words: Sequence[str], folder: Path, files: Sequence[Path], terminal: int) -> None:
    """Run the command with streams of its own, and end without anything of the parent's."""
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        modes = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        out, err = (terminal, terminal) if terminal >= 0 else (os.open(file, modes) for file in files)
        for number, handle in enumerate((terminal if terminal >= 0 else nowhere, out, err)):
            os.dup2(handle, number)
        sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in enumerate("rww"))  # noqa: SIM115
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.addaudithook(refuse_network)
        code = vitrail(list(words))
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
