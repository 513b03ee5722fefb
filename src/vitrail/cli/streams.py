"""stdin, stdout and stderr as a command may find them: closed, full, left by their reader, or short of letters.

Work never ends because its output is not read. What cannot be encoded is escaped; what the reader of stdout leaves
behind is dropped; a disk that is full under stdout is an error, for then the result is lost.
"""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from vitrail.base.errors import InputError, WriteError
from vitrail.base.limits import LIST_BYTES

LEFT = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Errors of writing after the reader has closed a pipe or a terminal."""
NARROWEST, WIDEST = 40, 1000
WIDEST_TEXT = 120
"""Columns between which text is laid out, whatever a terminal claims."""


class Stream:
    """A text stream that escapes what it cannot encode and outlives its reader."""

    def __init__(self, stream: Any, *, matters: bool) -> None:
        """Wrap a stream; where it `matters`, a failure other than a reader that has left is raised."""
        self.stream, self.matters = stream, matters
        self.left = False

    def write(self, text: str) -> int:
        """Write text as far as anybody reads it."""
        encoding = self.stream.encoding or "utf-8"
        self._attempt(lambda: self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding)))
        return len(text)

    def flush(self) -> None:
        """Hand over what was written."""
        self._attempt(self.stream.flush)

    def _attempt(self, action: Callable[[], object]) -> None:
        if self.left:
            return
        try:
            action()
        except OSError as error:
            self._leave()
            if self.matters and error.errno not in LEFT:
                raise WriteError(f"stdout could not be written: {error.strerror or error}.") from None
        except ValueError:  # the stream was closed
            self.left = True

    def _leave(self) -> None:
        """Send what is still buffered to nowhere: Python writes it when it ends, and would end with code 120."""
        self.left = True
        with suppress(OSError, ValueError):
            target = os.open(os.devnull, os.O_WRONLY)
            os.dup2(target, self.stream.fileno())
            os.close(target)

    def __getattr__(self, name: str) -> Any:
        """Answer everything else as the stream itself does."""
        return getattr(self.stream, name)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Give a command three streams that work, and put back those that were there."""
    _occupy()
    before = sys.stdin, sys.stdout, sys.stderr
    nowhere = open(os.devnull, "r+", encoding="utf-8")  # noqa: SIM115, PTH123 (until the command ends)
    sys.stdin = sys.stdin or nowhere
    sys.stdout = cast("TextIO", Stream(sys.stdout or nowhere, matters=True))
    sys.stderr = cast("TextIO", Stream(sys.stderr or nowhere, matters=False))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        nowhere.close()


def _occupy() -> None:
    """Open nothing in place of closed streams: a file of ours must not get their numbers, to which libraries write."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the lowest number that is free


def nobody_reads() -> bool:
    """Return whether the reader of stdout has left, so that further results are of no use."""
    return isinstance(sys.stdout, Stream) and sys.stdout.left


def read_stdin() -> bytes:
    """Read all of stdin, of which there may be as much as a list of paths may have."""
    try:
        text = sys.stdin.buffer.read(LIST_BYTES.value + 1)
    except OSError as error:
        raise InputError(f"stdin cannot be read: {error.strerror or error}.") from None
    LIST_BYTES.check(len(text), "stdin")
    return text


def screen_width() -> int:
    """Return the columns of the terminal; one that is too narrow for words is taken for wider than it is."""
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def text_width() -> int:
    """Return the columns of running text: those of the terminal, up to what is pleasant to read."""
    return min(screen_width(), WIDEST_TEXT)
