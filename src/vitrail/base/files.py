"""Files that appear whole or not at all, and folders that one process has for itself."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from vitrail.base.errors import ConfigError, InputError, WriteError


def path_of(name: str | os.PathLike[str], setting: str) -> Path:
    """Return a path that the system can look up, whether something is there or not.

    An empty one, which Python takes for the current folder, is refused, and so is one that is too long or that leads
    through a folder without rights.
    """
    text = os.fspath(name)
    if not text or "\0" in text:
        shown = "empty" if not text else "a name with a zero byte"
        raise ConfigError(f"`{setting}` is {shown}, but must be a path.")
    try:
        Path(text).lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        raise InputError(f"{text} cannot be a path: {getattr(error, 'strerror', error)}; give another.") from None
    return Path(text)


def name_text(name: str | bytes | os.PathLike[str]) -> str:
    """Return the name of a file as text: its bytes as UTF-8, whatever encoding the terminal has."""
    return os.fsencode(name).decode("utf-8", "surrogateescape")


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place when the block ends, and vanishes when it fails.

    The bytes reach the disk before the name does: `path` is the old file or the new one, even after a power cut.
    """
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} into; make it first.")
    path = path.resolve()  # a link stays a link: the file that it points to is replaced
    part = None
    try:
        _refuse_another_kind(path)
        start = os.fsdecode(os.fsencode(f".{path.name}")[:100])  # with a longer one, the name itself may be too long
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{start}.", suffix=".part")
        part = Path(name)
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except BaseException as error:
        if part is not None:
            with suppress(OSError):  # a disk that cannot be written to any more must not hide why
                part.unlink()
        if isinstance(error, OSError):
            raise WriteError(
                f"{path} could not be written: {error.strerror or error}; what was there before is untouched."
            ) from error
        raise
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise WriteError(f"{path} may not have reached the disk: {error.strerror or error}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with atomic_write(path) as file:
        file.write(content)


def _refuse_another_kind(path: Path) -> None:
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not an ordinary file"
        raise InputError(f"{path} is {kind}, but a file is to be written there; give another name.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Flush new names in a folder to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before the work that leads to it."""
    try:
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent} to write {path.name} into; make it first.")
        _refuse_another_kind(path)
    except OSError as error:  # a name that is too long, a folder without rights
        raise InputError(f"{path} cannot be written: {error.strerror}; give another name.") from None
    try:
        with tempfile.TemporaryFile(
            dir=path.parent
        ):  # permissions are not enough: root has them all, even on a read-only disk
            return
    except OSError as error:
        raise InputError(
            f"{path.parent} may not be written to ({error.strerror}); give another place for {path.name}."
        ) from None


def cache_folder() -> Path:
    """Return the folder for what can be made or got again: VITRAIL_CACHE, or vitrail in the user's cache folder."""
    own, caches = os.environ.get("VITRAIL_CACHE", ""), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(own).absolute()
    return (Path(caches) if Path(caches).is_absolute() else Path.home() / ".cache") / "vitrail"


_locks: set[int] = set()
"""Descriptors of the locks that this process holds."""


@contextmanager
def hold(lock: Path, *, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Keep other processes out of a folder during the block; `lock` is a file in it.

    A lock that another process has is refused, or `waiting` is called until it is free: it sleeps for a while. The
    system releases the lock of a process that ends, however it ends: a file that a kill left behind locks nothing.
    """
    handle = _take(lock, waiting)
    _locks.add(handle)
    try:
        yield
    finally:
        if handle in _locks:  # not in a fork
            _locks.remove(handle)
            with suppress(OSError):  # where nothing can be removed, an empty file stays, which locks nothing
                lock.unlink()
            os.close(handle)


def _take(lock: Path, waiting: Callable[[], None] | None) -> int:
    """Open and lock the file; try again if its owner has just removed it."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise WriteError(
                f"{lock.parent} may not be written to ({error.strerror or error}); give another `out`."
            ) from None
        with ExitStack() as stack:
            stack.callback(os.close, handle)
            _lock(handle, lock.parent, waiting)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), lock.stat()):
                    stack.pop_all()
                    return handle


def _lock(handle: int, folder: Path, waiting: Callable[[], None] | None) -> None:
    if os.name != "posix":
        return
    import fcntl

    with suppress(OSError):  # some file systems have no locks
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting is None:
                    raise InputError(
                        f"another process is working on {folder}; wait for it, or give another `out`."
                    ) from None
                waiting()
            else:
                return


def _leave_to_parent() -> None:
    """Release the locks in a fork: a worker that outlives its run by some seconds must not keep the next run out."""
    for handle in _locks:
        os.close(handle)
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
