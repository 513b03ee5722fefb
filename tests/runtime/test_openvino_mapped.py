import mmap
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.test_onnx_mapped import RANDOM, WEIGHTS, write
from vitrail import CheckpointError
from vitrail.runtime import openvino_mapped, openvino_session
from vitrail.runtime.openvino_mapped import let_go, mapped_regions, own_copy
from vitrail.runtime.openvino_session import OpenVinoSession

openvino = pytest.importorskip("openvino")
pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists what is mapped")

IMAGES = RANDOM.normal(size=(3, 40)).astype(np.float32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(openvino_mapped, "LEAST", 1)
    return tmp_path / "cache"


def graph(folder: Path, suffix: str) -> Path:
    """Write a small graph as ONNX, or in OpenVINO's format."""
    path = write(folder / "a graph.onnx")
    if suffix == ".onnx":
        return path
    openvino.save_model(openvino.Core().read_model(path), folder / "other.xml", compress_to_fp16=False)
    return folder / "other.xml"


def logits(session: OpenVinoSession) -> np.ndarray:
    return session.run(IMAGES, ["logits"])[0]


@pytest.mark.parametrize("suffix", [".onnx", ".xml"])
def test_a_mapped_graph_answers_as_one_in_memory_whatever_happens_to_its_files(
    suffix, tmp_path, cache, monkeypatch
) -> None:
    path = graph(tmp_path, suffix)
    regions = []

    @contextmanager
    def overwriting(weights):
        """Overwrite the files between reading and packing, and let the weights go."""
        regions.extend(weights)
        assert list((cache / "openvino").iterdir()) == []  # the copy has lost its name
        for file in tmp_path.glob("*.*"):
            file.write_bytes(bytes(file.stat().st_size))
        with let_go(weights):
            yield

    monkeypatch.setattr(openvino_session, "let_go", overwriting)
    answers = logits(OpenVinoSession(path, threads=1))
    np.testing.assert_allclose(answers, IMAGES @ WEIGHTS["matrix"] + WEIGHTS["bias"], rtol=1e-4, atol=1e-4)
    assert sum(size for _, size in regions) >= WEIGHTS["matrix"].nbytes
    graph(tmp_path, suffix)
    shutil.rmtree(cache)
    cache.touch()  # no copy can be written, so the file is read into memory
    assert np.array_equal(logits(OpenVinoSession(path, threads=1)), answers)


def test_a_small_file_is_not_copied(tmp_path, cache, monkeypatch) -> None:
    monkeypatch.setattr(openvino_mapped, "LEAST", 10**6)
    with own_copy(graph(tmp_path, ".onnx")) as copy:
        assert copy is None
    assert not cache.exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path, cache, monkeypatch) -> None:
    def full(*files):
        Path(files[1]).write_bytes(b"a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with own_copy(graph(tmp_path, ".onnx")) as copy:
        assert copy is None
    assert list((cache / "openvino").iterdir()) == []


@pytest.mark.parametrize("damage", ["shortened", "noise", "zeros"])
def test_a_damaged_file_is_refused_in_a_sentence_and_leaves_nothing_behind(damage, tmp_path, cache) -> None:
    path = graph(tmp_path, ".onnx")
    content = path.read_bytes()
    noise = RANDOM.integers(0, 256, len(content)).astype(np.uint8).tobytes()
    path.write_bytes({"shortened": content[:-100], "noise": noise, "zeros": bytes(len(content))}[damage])
    with pytest.raises(CheckpointError, match="does not run in OpenVINO"):
        OpenVinoSession(path, threads=1)
    assert list((cache / "openvino").iterdir()) == []


def test_copies_that_a_kill_left_behind_are_removed_when_they_are_old(tmp_path, cache) -> None:
    for name, age in (("openvino/old", 7200), ("openvino/new", 10), ("graphs", 7200)):
        (cache / name).mkdir(parents=True)
        (cache / name / "model.onnx").write_bytes(b"weights")
        stamp = (cache / name).stat().st_mtime - age
        os.utime(cache / name, (stamp, stamp))
    with own_copy(graph(tmp_path, ".onnx")):
        pass
    assert (cache / "graphs").is_dir()
    assert [folder.name for folder in (cache / "openvino").iterdir()] == ["new"]


@pytest.mark.usefixtures("cache")
def test_weights_in_a_file_of_their_own_are_read_from_there(tmp_path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(graph(tmp_path, ".onnx"))
    onnx.save(model, tmp_path / "apart.onnx", save_as_external_data=True, location="numbers.bin", size_threshold=0)
    expected = IMAGES @ WEIGHTS["matrix"] + WEIGHTS["bias"]
    np.testing.assert_allclose(
        logits(OpenVinoSession(tmp_path / "apart.onnx", threads=1)), expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.usefixtures("cache")
def test_a_cache_behind_a_link_is_found_among_what_is_mapped(tmp_path, monkeypatch) -> None:
    (tmp_path / "other").symlink_to(tmp_path)
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "other" / "cache"))
    with own_copy(graph(tmp_path, ".onnx")) as copy:
        assert copy is not None
        with copy.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
            assert mapped_regions(copy.parent)
    assert mapped_regions(copy.parent) == []


def resident(path: Path) -> int:
    """Return the kilobytes of a mapped file that are in memory of this process."""
    entries = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    (own,) = (entry for entry in entries if str(path) in entry)
    return int(re.search(r"^Rss: +(\d+) kB", own, flags=re.MULTILINE)[1])


def test_pages_that_are_let_go_leave_memory_and_come_back_from_the_file(tmp_path) -> None:
    content = RANDOM.integers(0, 256, 2**22).astype(np.uint8)
    path = tmp_path / "weights"
    path.write_bytes(content.tobytes())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        assert view.read() == content.tobytes()
        assert resident(path) == 4096
        ((_, size),) = regions = mapped_regions(tmp_path)
        assert size == 2**22
        with let_go(regions):
            pass
        assert resident(path) == 0
        view.seek(0)
        assert view.read() == content.tobytes()
