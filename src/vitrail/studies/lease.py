"""Which process works on a cell, for processes on one machine or on several that share a folder.

A claim is a file that is created, never replaced: `claim-0`, and after its owner died `claim-1`, ...; the system lets
one process create each, so that no cell is worked on twice. Its owner touches it every few seconds. A claim is dead
when its owner's process is gone from this machine, or when it was not touched for a minute, by the clock of the folder.
"""

import json
import os
import platform
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vitrail.base.errors import VitrailError, WriteError
from vitrail.base.reading import read_json

BEAT = 5.0
"""Seconds between two signs of life."""
SILENCE = 60.0
"""Seconds without one after which a claim is dead."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The claims of one cell, in a folder of their own."""

    folder: Path

    def take(self) -> Path | None:
        """Claim the cell; None where a living process has it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        last = self._last()
        if last is not None and self._alive(last):
            return None
        claim = self.folder / f"claim-{0 if last is None else _number(last) + 1}"
        try:
            handle = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except (FileExistsError, FileNotFoundError):  # another was faster, or removes the folder
            return None
        try:
            with os.fdopen(handle, "w") as file:
                owner = {"machine": platform.node(), "process": os.getpid(), "begun": _begun(os.getpid())}
                file.write(json.dumps(owner))
        except OSError as error:  # an empty claim would keep others out for a minute
            claim.unlink(missing_ok=True)
            raise WriteError(f"{claim} could not be written: {error.strerror or error}.") from None
        return claim

    @contextmanager
    def kept(self, claim: Path | None) -> Iterator[None]:
        """Show signs of life while the block lasts, and remove the claim after it; ranks without it only work."""
        if claim is None:
            yield
            return
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT):
                with suppress(OSError):
                    os.utime(claim)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            for path in self._claims():
                if _number(path) <= _number(claim):  # a later one belongs to a process that took this one for dead
                    with suppress(OSError):
                        path.unlink()

    def _claims(self) -> list[Path]:
        return sorted(self.folder.glob("claim-*"), key=_number)

    def _last(self) -> Path | None:
        claims = self._claims()
        return claims[-1] if claims else None

    def _alive(self, claim: Path) -> bool:
        try:
            owner, silent = read_json(claim), self._age(claim)
        except VitrailError:  # it says nothing, or not yet
            owner, silent = None, self._age(claim)
        if isinstance(owner, dict) and owner.get("machine") == platform.node():
            begun = _begun(owner.get("process"))
            return begun is not None and begun == owner.get("begun")
        return silent < SILENCE

    def _age(self, claim: Path) -> float:
        """Return the seconds without a sign of life; none for a claim whose owner has just finished."""
        try:
            return self._now() - claim.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _now(self) -> float:
        """Return the time by the clock of the folder, which may be another machine's."""
        with tempfile.TemporaryFile(dir=self.folder) as clock:
            return os.fstat(clock.fileno()).st_mtime


def _number(claim: Path) -> int:
    number = claim.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _begun(process: object) -> str | None:
    """Return when a process of this machine began, which tells it from a later one of the same number."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        with suppress(OSError, TypeError, ValueError, OverflowError):
            os.kill(int(str(process)), 0)
            return "alive"
        return None
