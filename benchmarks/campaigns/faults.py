"""Commands of Vitrail in forked processes, each with one fault: a signal, or a disk that is full or may only be read.

A process that has imported torch once is forked for each attempt, so that an attempt takes as long as its work. A fault
comes at the n-th call of the file system below the command's own folder (`sys.addaudithook`, and a wrapped `os.fsync`),
or after some seconds. A quota lets no file grow beyond some bytes: the write that meets it is done in part.
"""

import errno
import os
import pkgutil
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import vitrail

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.scandir", "os.listdir", "mmap"}
WRITING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "fsync"}
SIGNALS = {name: getattr(signal, name) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGSTOP")}
DISKS = {"full": errno.ENOSPC, "read-only": errno.EROFS}
QUOTA = "quota"
LONG = 20
"""Seconds in which some work has imported what it will."""
LONGEST = 120.0
"""Seconds after which an attempt counts as hanging."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to an attempt, and when: at a call of the first rank, or at a moment of any."""

    action: str
    call: int | None = None
    """The number of the call, from 1; the bytes of a quota."""
    seconds: float | None = None
    rank: int = 0


@dataclass(kw_only=True)
class Attempt:
    """How one attempt ended."""

    codes: list[int] = field(default_factory=list)
    """Exit codes of the ranks, below 0 for a signal."""
    seconds: float = 0.0
    said: str = ""
    """What the first rank wrote to stderr."""
    calls: int = 0
    """Calls of the file system that the first rank made."""
    met: str = ""
    """The call at which the fault came."""

    @property
    def clean(self) -> bool:
        """Whether nothing was said that a user should never see."""
        return "Traceback" not in self.said and "--debug" not in self.said


class Calls:
    """Counts the calls of this process below a folder, and lets the fault happen at one of them."""

    def __init__(self, folder: Path, fault: Fault | None, report: int) -> None:
        self.folder, self.fault, self.report = str(folder), fault, report
        self.number, self.busy = 0, False

    def install(self) -> None:
        if self.fault is not None and self.fault.action == QUOTA and self.fault.call is not None:
            self.tell("any write beyond", str(self.fault.call))
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.fault.call, self.fault.call))
            return
        sync = os.fsync

        def fsync(handle: int) -> None:
            self.count("fsync", str(Path(f"/proc/self/fd/{handle}").readlink()), writes=True)
            sync(handle)

        os.fsync = fsync
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.busy or event not in EVENTS or not arguments:
            return
        self.busy = True
        try:
            path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
            mode = str(arguments[1]) if event == "open" and arguments[1] is not None else ""
            flags = arguments[2] if event == "open" else 0
        finally:
            self.busy = False
        writes = event in WRITING or bool(set(mode) & set("wax+")) or bool(flags & (os.O_WRONLY | os.O_RDWR))
        self.count(event, path, writes=writes)

    def count(self, event: str, path: str, *, writes: bool) -> None:
        if not str(Path(path).absolute()).startswith(self.folder):
            return
        self.number += 1
        fault = self.fault
        if fault is None or fault.call is None or self.number < fault.call:
            return
        if fault.action in DISKS:
            if writes:
                self.tell(event, path)
                raise OSError(DISKS[fault.action], os.strerror(DISKS[fault.action]))
        elif self.number == fault.call:
            self.tell(event, path)
            os.kill(os.getpid(), SIGNALS[fault.action])

    def tell(self, event: str, path: str) -> None:
        os.write(self.report, f"met {event} {path.removeprefix(self.folder)}\n".encode())


def import_everything() -> None:
    """Import every module of Vitrail, so that a fork imports nothing: not late, and not what was edited meanwhile."""
    for module in pkgutil.walk_packages(vitrail.__path__, "vitrail."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


def import_used(work: Callable[[], int], folder: Path) -> None:
    """Import what some work imports as it goes, so that a fork need not; the work itself is done in a fork."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        before = set(sys.modules)
        with suppress(BaseException):
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            os.dup2(1, 2)
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.alarm(LONG)
            work()
        os.write(writing, "\n".join(sorted(set(sys.modules) - before)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        names = file.read().split()
    os.waitpid(pid, 0)
    for name in names:
        with suppress(Exception):  # made by a module as it went
            import_module(name)


def attempt(
    work: Callable[[], int], folder: Path, *, ranks: int = 1, fault: Fault | None = None, cwd: Path | None = None
) -> Attempt:
    """Do some work in forked processes, one for each rank, with a fault; when one dies, the others are ended too."""
    result, began = Attempt(), time.monotonic()
    port, reading, pids = _free_port(), [], []
    for rank in range(ranks):
        one, other = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(one)
            if ranks > 1:
                names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
                values = (rank, ranks, rank, ranks, "127.0.0.1", port)
                os.environ |= dict(zip(names, map(str, values), strict=True))
            here = fault if fault is not None and fault.rank == rank else None
            _child(work, Calls(folder, here, other), cwd)
        os.close(other)
        reading.append(one)
        pids.append(pid)
    _watch(result, pids, fault, began)
    result.seconds = time.monotonic() - began
    for number, handle in enumerate(reading):
        with os.fdopen(handle, "rb") as file:
            told = file.read().decode(errors="replace")
        for line in told.splitlines():
            if line.startswith("calls ") and not number:
                result.calls = int(line.split()[1])
            elif line.startswith("met "):
                result.met = result.met or line.removeprefix("met ")
            elif not line.startswith("calls "):
                result.said += line + "\n"
    return result


def _child(work: Callable[[], int], calls: Calls, cwd: Path | None) -> None:
    """Work, and end without anything of the parent's; what is said goes to the pipe."""
    code = 70
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the campaign itself may run under nohup
        if cwd is not None:
            os.chdir(cwd)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(calls.report, 2)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        calls.install()
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os.write(calls.report, f"\ncalls {calls.number}\n".encode())
        os._exit(code)


def _watch(result: Attempt, pids: list[int], fault: Fault | None, began: float) -> None:
    """Wait for the ranks; send the fault at its moment, continue what is stopped, end the others of one that died."""
    codes: dict[int, int] = {}
    sent = fault is None or fault.seconds is None
    while len(codes) < len(pids):
        elapsed = time.monotonic() - began
        if not sent and fault is not None and fault.seconds is not None and elapsed >= fault.seconds:
            sent = True
            result.met = f"after {fault.seconds:.2f} s"
            # A scheduler's signal reaches every rank; a kill or a stop meets one.
            everyone = fault.action in ("SIGTERM", "SIGHUP")
            for pid in pids if everyone else [pids[fault.rank]]:
                with suppress(ProcessLookupError):
                    os.kill(pid, SIGNALS[fault.action])
        if elapsed > LONGEST:
            result.said += f"hangs for {LONGEST:.0f} s\n"
            _end(pids, codes)
        for pid in pids:
            if pid in codes:
                continue
            ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if ended and os.WIFSTOPPED(status):
                time.sleep(0.1)
                os.kill(pid, signal.SIGCONT)
            elif ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
                if codes[pid] and len(pids) > 1:
                    _follow(pids, codes, fault)
        time.sleep(0.002)
    result.codes = [codes[pid] for pid in pids]


def _follow(pids: list[int], codes: dict[int, int], fault: Fault | None) -> None:
    """Do what torchrun does with the ranks beside one that ended: signal them, wait, and end them."""
    graceful = fault is not None and fault.action in ("SIGTERM", "SIGHUP")
    for pid in pids:
        if pid not in codes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + (10.0 if graceful else 1.0)
    while time.monotonic() < limit and len(codes) < len(pids):
        for pid in pids:
            if pid not in codes:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    codes[pid] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    _end(pids, codes)


def _end(pids: list[int], codes: dict[int, int]) -> None:
    for pid in pids:
        if pid not in codes:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            codes[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
