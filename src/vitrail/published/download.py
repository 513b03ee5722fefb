"""One file from an address into the cache: resumed after a cut, checked, and in its place only when it is whole.

`NAME.part` holds what was received, and `NAME.part.json` what the server calls these bytes: a later call, also of
another process, asks for the rest of the same bytes (Range, If-Range), and begins again where they have changed.
"""

import hashlib
import http.client
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vitrail.base.errors import InputError, NetworkError, WriteError
from vitrail.base.files import sync_folder, write_whole
from vitrail.base.limits import DOWNLOAD_BYTES
from vitrail.base.notes import Note
from vitrail.base.progress import Progress
from vitrail.base.readable import in_bytes
from vitrail.base.reading import read_json
from vitrail.published.record import FileFacts
from vitrail.published.web import Answer, PassingError, RangeError, request

PIECE = 2**18
MEGABYTE = 10**6
ROOM = 64 * 2**20
"""Bytes that stay free on the disk."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a server is waited for."""

    timeout: float = 30.0
    """Seconds of silence after which a connection counts as cut."""
    tries: int = 5
    """Failures in a row, without a byte between them, after which the download fails."""
    pause: float = 1.0
    """Seconds before the second try; each further one waits twice as long."""
    longest: float = 120.0
    """The longest wait that a server may ask for, in seconds."""
    sleep: Callable[[float], None] = time.sleep
    """What waits."""


class Download:
    """A file on its way; `run` returns when it is whole."""

    def __init__(self, address: str, path: Path, *, title: str, patience: Patience, note: Note) -> None:
        self.address, self.path, self.title, self.patience, self.note = address, path, title, patience, note
        self.part, self.tag = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
        self.received = 0
        self.total: int | None = None
        self.validator: str | None = None
        self.digest = hashlib.sha256()
        self.failures, self.reached = 0, False

    def run(self, progress: Progress, *, size: int | None, check: Callable[[FileFacts], None]) -> FileFacts:
        """Get the file and put it into its place; what `check` refuses is deleted, and so is another `size`."""
        with self._opened() as file:
            answer = self._ask(file, size)
            total = -(-(self.total or MEGABYTE) // MEGABYTE)
            for _ in progress(self._megabytes(answer, file, size), total=total, title=f"{self.title} (MB)"):
                pass
            self._write(file, b"", flush=True)
        facts = FileFacts(size=self.received, sha256=self.digest.hexdigest())
        try:
            check(facts)
        except NetworkError:
            self.discard()
            raise
        self.part.replace(self.path)
        sync_folder(self.path.parent)
        self.tag.unlink(missing_ok=True)
        return facts

    def discard(self) -> None:
        """Delete what was received."""
        self.part.unlink(missing_ok=True)
        self.tag.unlink(missing_ok=True)

    def _opened(self) -> BinaryIO:
        """Open what was received before, if the server has a name for it, and read it into the digest."""
        try:
            tag = read_json(self.tag) if self.tag.is_file() and self.part.is_file() else {}
        except InputError:
            tag = {}
        if isinstance(tag, dict) and tag.get("address") == self.address and isinstance(tag.get("validator"), str):
            self.validator = tag["validator"]
            file = self.part.open("r+b")
            while piece := file.read(2**20):
                self.digest.update(piece)
                self.received += len(piece)
            return file
        return self.part.open("w+b")

    def _restart(self, file: BinaryIO) -> None:
        file.seek(0)
        file.truncate()
        self.received, self.digest, self.validator = 0, hashlib.sha256(), None

    def _ask(self, file: BinaryIO, size: int | None) -> Answer:
        """Ask for what is missing, as often as patience lasts, and check what is going to come."""
        while True:
            headers = {}
            if self.received and self.validator:
                headers = {"Range": f"bytes={self.received}-", "If-Range": self.validator}
            try:
                answer = request(self.address, headers, timeout=self.patience.timeout)
                self._begin(answer, file, size)
            except RangeError:
                if not self.received:
                    raise NetworkError(f"{self.title} cannot be got: the server has no bytes of it.") from None
                self._restart(file)
            except PassingError as error:
                self._wait(error)
            else:
                return answer

    def _begin(self, answer: Answer, file: BinaryIO, size: int | None) -> None:
        """Read the headers of an answer: the rest of the bytes that are here, or all of them from the beginning."""
        self.reached = True
        if answer.headers.get_content_type() == "text/html":
            raise NetworkError(f"{self.title}: the server answers with a web page, not a file; give its own address.")
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise NetworkError(f"{self.title}: the server sends the file compressed, though asked not to.")
        length = answer.headers.get("Content-Length", "")
        whole = int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None
        if answer.status == 206:
            span = re.fullmatch(r"bytes ([0-9]+)-([0-9]+)/([0-9]+)", answer.headers.get("Content-Range", ""))
            if span is None or int(span[1]) != self.received:
                self._restart(file)
                raise PassingError("the server sent another part of the file than the requested one")
            self.total = int(span[3])
        else:
            self._restart(file)
            if whole is None and not answer.body.chunked:
                raise NetworkError(
                    f"{self.title}: the server does not state how long the file is, so that a cut could not be noticed."
                )
            self.total, self.validator = whole, answer.validator
        self._check_size(size)
        if self.validator is not None:
            write_whole(
                self.tag,
                json.dumps({"address": self.address, "validator": self.validator, "name": self.title}).encode(),
            )

    def _check_size(self, size: int | None) -> None:
        if self.total is None:
            return
        if self.total == 0 or (size is not None and self.total != size):
            self.discard()
            needed = "is empty" if self.total == 0 else f"has {self.total:,} bytes, but {size:,} were published"
            raise NetworkError(f"{self.title}: the file on the server {needed}; it is not taken.")
        DOWNLOAD_BYTES.check(self.total, self.title, NetworkError)
        check_room(self.path.parent, self.total - self.received, self.title)

    def _megabytes(self, answer: Answer, file: BinaryIO, size: int | None) -> Iterator[int]:
        """Receive to the end, and yield once for each megabyte; a cut is resumed."""
        shown = 0
        while True:
            try:
                for _ in self._pieces(answer, file):
                    while shown < self.received // MEGABYTE:
                        shown += 1
                        yield shown
                break
            except PassingError as error:
                self._wait(error)
            answer = self._ask(file, size)
        if self.received % MEGABYTE or not shown:
            yield shown + 1

    def _pieces(self, answer: Answer, file: BinaryIO) -> Iterator[int]:
        """Receive and write one body; one that ends too early is an error that passes."""
        with answer.body as body:
            while True:
                try:
                    piece = body.read(PIECE)
                except (OSError, http.client.HTTPException) as error:
                    cause = "no bytes came in time" if isinstance(error, TimeoutError) else "the connection was cut"
                    raise PassingError(cause) from None
                if not piece:
                    break
                self._write(file, piece)
                self.received += len(piece)
                self.failures = 0
                DOWNLOAD_BYTES.check(self.received, self.title, NetworkError)
                yield self.received
        if self.total is not None and self.received < self.total:
            raise PassingError("the connection was cut")

    def _write(self, file: BinaryIO, piece: bytes, *, flush: bool = False) -> None:
        try:
            file.write(piece)
            self.digest.update(piece)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WriteError(
                f"{self.part} could not be written: {error.strerror or error}; make room, and the same command resumes."
            ) from None

    def _wait(self, error: PassingError) -> None:
        """Wait before the next try, or give up."""
        self.failures += 1
        kept = f"{self.received:,} bytes are kept, and the same command resumes"
        if self.failures >= self.patience.tries or not (error.reached or self.reached):
            advice = kept if self.received and self.validator else "try again later"
            raise NetworkError(f"{self.title} could not be downloaded: {error}; {advice}.") from None
        pause = self.patience.pause * 2 ** (self.failures - 1) if error.wait is None else error.wait
        if pause > self.patience.longest:
            raise NetworkError(
                f"{self.title} could not be downloaded: {error}, in {pause:,.0f} seconds; try again then."
            )
        self.note(f"{self.title}: {error}; trying again in {pause:.0f} s.")
        self.patience.sleep(pause)


def check_room(folder: Path, needed: int, title: str) -> None:
    """Refuse a download that the disk has no room for, before it begins."""
    free = shutil.disk_usage(folder).free
    if needed + ROOM > free:
        raise WriteError(
            f"{title} takes {in_bytes(needed)}, but {folder} has {in_bytes(free)} free; make room, let "
            "`vitrail pull` remove other models, or set VITRAIL_CACHE to another disk."
        )
