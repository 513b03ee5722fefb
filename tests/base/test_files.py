import errno
import os
import signal
import subprocess
import sys

import pytest

from vitrail.base.errors import InputError, WriteError
from vitrail.base.files import atomic_write, hold


def test_a_file_appears_when_it_is_complete(tmp_path) -> None:
    path = tmp_path / "x"
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_the_bytes_are_on_disk_before_the_name_is(tmp_path, monkeypatch) -> None:
    events = []
    monkeypatch.setattr(os, "fsync", lambda _: events.append(("fsync", (tmp_path / "x").exists())))
    with atomic_write(tmp_path / "x") as file:
        file.write(b"new")
    assert events[0] == ("fsync", False)
    assert ("fsync", True) in events[1:]


def test_a_new_file_can_be_read_by_all_whom_the_umask_allows(tmp_path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    with atomic_write(tmp_path / "x") as file:
        file.write(b"")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fill() -> None:
        with atomic_write(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WriteError, match="No space left on device; what was there before is untouched"):
        fill()
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_only_an_ordinary_file_is_ever_replaced(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not an ordinary file"), atomic_write(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_stays_a_link_to_the_new_file(tmp_path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_name_that_is_too_long_is_one_sentence(tmp_path) -> None:
    with (
        pytest.raises(WriteError, match="could not be written: File name too long"),
        atomic_write(tmp_path / ("x" * 300)),
    ):
        pass


HOLD = """
import multiprocessing, os, pathlib, sys, time
from vitrail.base.files import hold

def work():
    print(os.getpid(), flush=True)
    time.sleep(60)

with hold(pathlib.Path(sys.argv[1])):
    if sys.argv[2] == "worker":
        multiprocessing.get_context("fork").Process(target=work).start()
    else:
        print(0, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["alone", "worker"])
def test_a_lock_keeps_others_out_until_its_process_ends_in_any_way(kind: str, tmp_path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(lock), kind], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        worker = int(holder.stdout.readline())
        with pytest.raises(InputError, match=f"another process is working on {tmp_path}"), hold(lock):
            pass
        assert lock.exists()
        holder.kill()
    with hold(lock):  # a worker that is still there does not hold it
        if worker:
            os.kill(worker, signal.SIGKILL)
        assert lock.exists()
    assert not lock.exists()


def test_a_lock_can_be_held_once_and_again_afterwards(tmp_path) -> None:
    lock = tmp_path / "lock"
    for _ in range(2):
        with hold(lock), pytest.raises(InputError, match="another process"), hold(lock):
            pass
        assert not lock.exists()


def test_a_lock_that_was_removed_while_it_was_opened_is_taken_again(tmp_path, monkeypatch) -> None:
    lock, real, calls = tmp_path / "lock", os.open, []

    def removed_once(path, *rest):
        handle = real(path, *rest)
        if not calls:
            lock.unlink()
        calls.append(path)
        return handle

    monkeypatch.setattr(os, "open", removed_once)
    with hold(lock):
        assert len(calls) == 2
        with pytest.raises(InputError, match="another process"), hold(lock):
            pass


def test_a_folder_where_no_lock_can_be_made_is_one_sentence(tmp_path) -> None:
    with pytest.raises(WriteError, match="may not be written to"), hold(tmp_path / "nowhere" / "lock"):
        pass


def test_a_name_as_long_as_the_system_takes_is_written(tmp_path) -> None:
    for name in ("x" * 255, "\u732b" * 85):
        with atomic_write(tmp_path / name) as file:
            file.write(b"whole")
        assert (tmp_path / name).read_bytes() == b"whole"
