"""Answers into one file: in order, each image once, whatever is broken and whenever it was stopped."""

import csv
import json
import os
import random
import zlib
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

import vitrail
from tests.prediction.making import LABELS, saved_model, saved_photos, work
from vitrail.base.errors import InputError, WriteError
from vitrail.prediction import parts as parts_module
from vitrail.prediction.classifier import Classifier
from vitrail.prediction.folder import Listing
from vitrail.prediction.parts import Parts

NAMES = [f"{number % 3}/{number:02d}.png" for number in range(23)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_model(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = saved_photos(tmp_path / "photos", NAMES)
    (folder / "1" / "07.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    return folder


class Killed(BaseException):
    """What stands for a kill."""


class Reads:
    """Counts how often each file is read, and stops the work at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.stop_after = 10**9
        original, lock = Listing.read, Lock()

        def read(listing: Listing, row: int) -> bytes:
            with lock:
                if sum(self.counts.values()) >= self.stop_after:
                    raise Killed
                self.counts[listing.name(row)] += 1
            return original(listing, row)

        monkeypatch.setattr(Listing, "read", read)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def rows_of(out: Path) -> list[list[str]]:
    with out.open(newline="") as file:
        return list(csv.reader(file))[1:]


def test_the_output_has_a_row_for_each_image_in_order(model: Path, photos: Path, tmp_path: Path) -> None:
    outcome = work(model, [str(photos)], tmp_path / "x.csv")
    rows = rows_of(tmp_path / "x.csv")
    ordered = sorted(str(photos / name) for name in NAMES)
    assert [row[0] for row in rows] == ordered
    classifier = Classifier.load(model, device="cpu")
    for row in rows:
        if row[0].endswith("07.png"):
            assert row[1:-1] == [""] * 6
            assert "broken or truncated" in row[-1]
            continue
        alone = classifier.predict(row[0], top=3)
        assert row[1::2] == [*(label for label, _ in alone.top), ""]
        np.testing.assert_allclose(list(map(float, row[2::2])), [value for _, value in alone.top], atol=1e-5)
    assert (outcome.images, outcome.failed, outcome.before) == (23, 1, 0)
    assert outcome.failures[0][0].endswith("07.png")
    assert outcome.labels == dict(Counter(row[1] for row in rows if row[1]))
    assert not Path(f"{tmp_path / 'x.csv'}.parts").exists()


def test_every_format_has_the_same_rows(model: Path, photos: Path, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for suffix in (".csv", ".jsonl", ".parquet"):
        work(model, [str(photos)], tmp_path / f"x{suffix}")
    table = pq.read_table(tmp_path / "x.parquet").to_pylist()
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    for row, line, cells in zip(table, lines, rows_of(tmp_path / "x.csv"), strict=True):
        assert row["path"] == line["path"] == cells[0]
        assert row["label"] == line.get("label") == (cells[1] or None)
        assert row["probability"] == line.get("probability") == (float(cells[2]) if cells[2] else None)
        assert row["error"] == line.get("error") == (cells[-1] or None)


@pytest.mark.parametrize("seed", range(4))
def test_stopped_anywhere_and_cut_anywhere_it_goes_on_to_the_same_file(
    seed: int, model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    work(model, [str(photos)], tmp_path / "straight.csv")
    chance = random.Random(seed)  # noqa: S311
    out, folder = tmp_path / "x.csv", tmp_path / "x.csv.parts"
    whole: set[int] = set()
    while True:
        reads.counts.clear()
        reads.stop_after = chance.randrange(1, 14)
        done_before = set(whole)
        try:
            work(model, [str(photos)], out, batch=chance.choice([1, 2, 4]))
            break
        except Killed:
            assert not out.exists()
        answered = [int(Path(name).stem) for name in reads.counts]
        assert max(reads.counts.values(), default=1) == 1
        assert not {number for number in done_before if number != 7} & set(answered)  # a broken one is tried again
        newest = max(folder.glob("*.jsonl"), key=lambda path: int(path.name.split("-")[0]))
        if newest.stat().st_size:  # a kill of the system can lose the end of what was written
            os.truncate(newest, chance.randrange(newest.stat().st_size + 1))
        names = sorted(str(photos / name) for name in NAMES)
        whole = {
            int(Path(names[json.loads(line)[0]]).stem)
            for path in folder.glob("*.jsonl")
            for line in path.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        }
    assert out.read_bytes() == (tmp_path / "straight.csv").read_bytes() or _nearly(out, tmp_path / "straight.csv")
    assert not folder.exists()


def _nearly(one: Path, other: Path) -> bool:
    """Compare two outputs that were computed in other batches: all but the last digits."""
    for ours, theirs in zip(rows_of(one), rows_of(other), strict=True):
        assert ours[0::7] == theirs[0::7]
        assert ours[1::2] == theirs[1::2]
        if ours[1]:
            np.testing.assert_allclose([*map(float, ours[2::2])], [*map(float, theirs[2::2])], atol=1e-5)
    return True


def signed(text: str) -> bytes:
    """Give an answer a right checksum."""
    return f"{text[:-1]}, {zlib.crc32(text.encode())}]".encode()


DAMAGED = [
    b"\x00\xff not a line",
    b"[0, [[99999, 0.5]], 1]",
    b'[-1, "negative"]',
    b"[1e99, [[0, NaN]], 0]",
    b"[{}, 3, [], 4]",
    b'[9999999999999999999999, "far"]',
    b"[" * 100_000,
    *map(
        signed,
        (
            "[0, [[0, 0.5]]]",
            "[0, [[0, 0.5, 1], [1, 0.5, 1]]]",
            "[0, [[99999, 0.5], [1, 0.5]]]",
            "[0, [[0, NaN], [1, 0.5]]]",
            '[0, [[0, "x"], [1, 0.5]]]',
            "[0, 3]",
        ),
    ),
]


@pytest.mark.parametrize("flip", [False, True])
def test_a_damaged_answer_is_answered_again_and_those_behind_it_are_kept(
    flip: bool, model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    work(model, [str(photos)], tmp_path / "straight.csv", workers=1)
    reads.counts.clear()
    out, folder = tmp_path / "x.csv", tmp_path / "x.csv.parts"
    reads.counts.clear()
    reads.stop_after = 9
    with pytest.raises(Killed):
        work(model, [str(photos)], out, workers=1, batch=1)
    (part,) = folder.glob("*.jsonl")
    first, second, *rest = part.read_bytes().splitlines()
    changed = [second.replace(b"0.", b"1.", 1)] if flip else DAMAGED
    part.write_bytes(b"".join(line + b"\n" for line in (first, *changed, *rest)))
    reads.stop_after = 10**9
    outcome = work(model, [str(photos)], out, workers=1)
    assert outcome.before == 1 + len(rest) >= 5
    assert out.read_bytes() == (tmp_path / "straight.csv").read_bytes() or _nearly(out, tmp_path / "straight.csv")


@pytest.mark.parametrize("name", ["job.json", "x.jsonl"])
def test_a_part_that_cannot_be_read_is_one_sentence_with_its_name(
    name: str, model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    out, folder = tmp_path / "x.csv", tmp_path / "x.csv.parts"
    reads.stop_after = 9
    with pytest.raises(Killed):
        work(model, [str(photos)], out, workers=1)
    (folder / name).unlink(missing_ok=True)
    (folder / name).mkdir()
    with pytest.raises(InputError, match=rf"{name} cannot be read \(.*\); remove .*parts to start again"):
        work(model, [str(photos)], out, workers=1)


def test_what_was_answered_before_is_not_read_again(model: Path, photos: Path, tmp_path: Path, reads: Reads) -> None:
    out = tmp_path / "x.jsonl"
    reads.stop_after = 9
    with pytest.raises(Killed):
        work(model, [str(photos)], out, workers=1)
    first = dict(reads.counts)
    assert len(first) == 9
    reads.counts.clear()
    reads.stop_after = 10**9
    outcome = work(model, [str(photos)], out, workers=1)
    assert outcome.before == 8  # two batches of four; the ninth image was read and not answered
    assert len(set(first) & set(reads.counts)) == 1
    assert len(reads.counts) == 23 - 8


def test_a_broken_image_is_tried_again_after_a_stop(model: Path, photos: Path, tmp_path: Path, reads: Reads) -> None:
    out = tmp_path / "x.csv"
    reads.stop_after = 20
    with pytest.raises(Killed):
        work(model, [str(photos)], out, batch=1)
    saved_photos(photos, ["1/07.png"])
    reads.stop_after = 10**9
    outcome = work(model, [str(photos)], out)
    assert outcome.failed == 0
    assert all(row[-1] == "" for row in rows_of(out))


def test_parts_of_other_work_are_refused_with_every_difference(
    model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    out = tmp_path / "x.csv"
    reads.stop_after = 9
    with pytest.raises(Killed):
        work(model, [str(photos)], out)
    reads.stop_after = 10**9
    with pytest.raises(InputError, match=r"top is 2 here and 3 there\. Give the same command"):
        work(model, [str(photos)], out, top=2)
    with pytest.raises(InputError, match=r"preprocessing is .*24, 32.* here and .*12, 16.* there"):
        work(model, [str(photos)], out, image_size=(24, 32))
    with pytest.raises(InputError, match="the list of files is another one; images is 7 here and 23 there"):
        work(model, [str(photos / "2")], out)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InputError, match="the model is another one"):
        work(saved_model(other, dim=16), [str(photos)], out)
    assert work(model, [str(photos)], out, labels=["x"] * 7).labels == {"x": 22}  # names may change on the way


def test_a_foreign_folder_of_that_name_is_left_alone(model: Path, photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "x.csv.parts"
    folder.mkdir()
    (folder / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="does not hold parts of predictions"):
        work(model, [str(photos)], tmp_path / "x.csv")
    assert (folder / "letter.txt").read_text() == "dear"
    (folder / "letter.txt").rename(folder / "job.json")
    with pytest.raises(InputError, match="cannot be read"):
        work(model, [str(photos)], tmp_path / "x.csv")


def test_two_processes_do_not_work_on_the_same_output(model: Path, photos: Path, tmp_path: Path) -> None:
    with (
        Parts.beside(tmp_path / "x.csv").claimed(),
        pytest.raises(InputError, match="another process is working on"),
    ):
        work(model, [str(photos)], tmp_path / "x.csv")
    assert work(model, [str(photos)], tmp_path / "x.csv").images == 23


def test_an_output_that_cannot_be_written_is_refused_before_an_image_is_read(
    model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    (tmp_path / "x.csv.parts").write_text("a file")
    with pytest.raises(WriteError, match=r"x.csv.parts could not be made"):
        work(model, [str(photos)], tmp_path / "x.csv")
    assert not reads.counts


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(
    model: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk:
        """The system, on which answers cannot be written."""

        def fsync(self, _: int) -> None:
            raise OSError(28, "No space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

    with monkeypatch.context() as patched:
        patched.setattr(parts_module, "SYNC", -1.0)
        patched.setattr(parts_module, "os", FullDisk())
        with pytest.raises(WriteError, match="No space left on device; what was answered before is kept"):
            work(model, [str(photos)], tmp_path / "x.csv")
    assert work(model, [str(photos)], tmp_path / "x.csv").images == 23


def test_an_output_that_was_there_is_replaced_when_the_work_is_done(
    model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    out = tmp_path / "x.csv"
    out.write_text("before")
    reads.stop_after = 5
    with pytest.raises(Killed):
        work(model, [str(photos)], out)
    assert out.read_text() == "before"
    reads.stop_after = 10**9
    work(model, [str(photos)], out)
    assert len(rows_of(out)) == 23


def test_when_nothing_can_be_read_there_are_only_errors(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.jpg").write_bytes(b"no image")
    outcome = work(model, [str(folder)], tmp_path / "x.csv")
    assert (outcome.images, outcome.failed, outcome.labels) == (3, 3, {})
    assert [row[-1][:13] for row in rows_of(tmp_path / "x.csv")] == ["it is not a J"] * 3


def test_a_file_without_a_digest_is_known_by_its_weights(
    model: Path, photos: Path, tmp_path: Path, reads: Reads
) -> None:
    loaded, foreign, out = vitrail.load(model), tmp_path / "timm.safetensors", tmp_path / "x.csv"
    vitrail.save(loaded, foreign, to="timm")
    reads.stop_after = 9
    with pytest.raises(Killed):
        work(foreign, [str(photos)], out)
    reads.stop_after = 10**9
    original = foreign.read_bytes()
    loaded.head.linear.weight.data[0, 0] += 1
    vitrail.save(loaded, foreign, to="timm")
    with pytest.raises(InputError, match="the model is another one"):
        work(foreign, [str(photos)], out)
    foreign.write_bytes(original)
    assert work(foreign, [str(photos)], out).images == 23


def test_labels_are_those_of_the_model(model: Path, photos: Path, tmp_path: Path) -> None:
    outcome = work(model, [str(photos)], tmp_path / "x.csv", top=99)
    assert set(outcome.labels) <= set(LABELS)
    assert len(rows_of(tmp_path / "x.csv")[0]) == 2 + 2 * 7
