import csv
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import ImageOps

from tests.data.pictures import encoded, photo
from tests.report.pages import headings, read, words
from tests.report.pages import part as section
from vitrail.cli import data
from vitrail.cli import progress as told
from vitrail.cli.main import main
from vitrail.cli.tables import print_tables
from vitrail.data.survey.duplicates import MOST_BITS, NEAR_BITS
from vitrail.verbs.survey_tables import class_table

pytestmark = pytest.mark.usefixtures("unchecked")  # no tensors here, and the checks refuse 7 where 7.0 is meant


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main(["data", *map(str, words)])
    output = capsys.readouterr()
    return code, output.out, output.err


def run_json(capsys, *words: object) -> tuple[int, dict]:
    code, out, _ = run(capsys, *words, "--json")
    return code, json.loads(out)


def save(folder: Path, name: str, data: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Photos with one broken file, three leaks of different kinds, a copy, and a picture that is in two classes."""
    data = tmp_path / "photos"
    shots = [photo(seed, 180, 140) for seed in range(12)]
    for number in range(3):
        save(data, f"train/ants/{number}.png", encoded(shots[number]))
        save(data, f"train/bees/{number}.jpg", encoded(shots[3 + number], "JPEG", quality=95))
    save(data, "train/bees/broken.jpg", encoded(shots[6], "JPEG")[:900])
    save(data, "train/ants/copy of 0.png", encoded(shots[0]))
    save(data, "train/ants/twice.png", encoded(shots[7]))
    save(data, "train/bees/twice.png", encoded(shots[7]))
    save(data, "test/ants/a.png", encoded(shots[8]))
    save(data, "test/ants/exact.bmp", encoded(shots[1], "BMP"))
    save(data, "test/bees/near.jpg", encoded(shots[4].resize((90, 70)), "JPEG", quality=60))
    save(data, "test/bees/mirrored.png", encoded(ImageOps.mirror(shots[5])))
    return data


LEFT_OUT = {
    "train/ants/1.png": "the same pixels as",
    "train/ants/copy of 0.png": "which stays",
    "train/ants/twice.png": "in 2 classes",
    "train/bees/1.jpg": "nearly the same as",
    "train/bees/2.jpg": "nearly the mirror image of",
    "train/bees/broken.jpg": "it cannot be read: it is broken or truncated",
    "train/bees/twice.png": "in 2 classes",
}


def test_everything_that_is_wrong_is_found_and_the_clean_list_is_clean(folder, capsys) -> None:
    clean = folder / "clean.csv"
    code, report = run_json(capsys, folder, "--clean", clean)
    assert code == 0
    assert [Path(found["name"]).name for found in report["unreadable"]] == ["broken.jpg"]
    leaks = {
        Path(leak["image"]["name"]).name: (leak["kind"], Path(leak["other"]["name"]).name) for leak in report["leaks"]
    }
    assert leaks == {
        "1.png": ("exact", "exact.bmp"),
        "1.jpg": ("near", "near.jpg"),
        "2.jpg": ("mirrored", "mirrored.png"),
    }
    assert [{image["class"] for image in group} for group in report["conflicts"]] == [{"ants", "bees"}]
    assert len(report["exact"]) == 2
    assert report["near"] == []
    gone = {
        Path(found["name"]).relative_to(folder).as_posix(): found["reason"] for found in report["clean"]["left_out"]
    }
    assert gone.keys() == LEFT_OUT.keys()
    assert all(LEFT_OUT[name] in reason for name, reason in gone.items())
    rows = list(csv.DictReader(io.StringIO(clean.read_text())))
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")} - LEFT_OUT.keys() - {"clean.csv"}
    assert {row["path"] for row in rows} == kept
    assert all(row["path"].startswith(f"{row['split']}/{row['label']}/") for row in rows)

    code, again = run_json(capsys, clean)
    assert code == 0
    assert again["images"] == len(kept) == report["clean"]["images"]
    assert again["classes"] == ["ants", "bees"]
    for problem in ("unreadable", "leaks", "exact", "near", "conflicts", "skipped"):
        assert again[problem] == []


def test_a_clean_list_elsewhere_says_how_to_open_it(folder, tmp_path, capsys) -> None:
    (tmp_path / "lists").mkdir()
    clean = tmp_path / "lists" / "clean.csv"
    code, out, _ = run(capsys, folder, "--clean", clean)
    assert code == 0
    assert f"open it with --root {folder}" in " ".join(out.split())
    code, report = run_json(capsys, clean, "--root", folder)
    assert (code, report["images"]) == (0, 7)


def test_the_report_names_everything(folder, capsys) -> None:
    code, out, err = run(capsys, folder, "--clean", folder / "clean.csv", "--sheet", folder.parent / "x.html")
    assert (code, err) == (0, "")
    assert "\nclass  train  test\nants       5     2\nbees       5     2\n" in out
    unfolded = " ".join(out.split())
    assert unfolded.startswith(f"{folder}: 14 images, 2 classes")
    for part in (
        "PNG 8, JPEG 4, BMP 1",
        "RGB 13",
        "90 to 180, median 180",
        "broken.jpg",
        "truncated",
        "train: nearly the mirror image of test/bees/mirrored.png in test (1.00)",
        "Same pixels in different classes",
        "lists 7 images; 7 were left out.",
        f"The pictures are in {folder.parent / 'x.html'}.",
    ):
        assert part in unfolded


def test_the_sheet_shows_classes_and_leaks(folder, tmp_path, capsys) -> None:
    code, report = run_json(capsys, folder, "--sheet", tmp_path / "with.html")
    assert (code, report["sheet"]) == (0, str(tmp_path / "with.html"))
    full = read((tmp_path / "with.html").read_text())
    assert [words(node) for node in section(full, "Classes").iter("h3")] == ["ants", "bees"]
    assert len(list(section(full, "Images that are also in a later split").iter("figure"))) == 3
    for name, flags in {
        "strong.html": ["--augment", "strong"],
        "none.html": ["--augment", "none"],
        "small.html": ["--image-size", "16x24"],
        "seed.html": ["--seed", "5"],
    }.items():
        assert run(capsys, folder, "--sheet", tmp_path / name, *flags)[0] == 0
        page = read((tmp_path / name).read_text())
        assert headings(page) == headings(full)
        before, after = (section(found, "What training makes of them") for found in (full, page))
        assert [node.get("src") for node in before.iter("img")] != [node.get("src") for node in after.iter("img")]


@pytest.mark.parametrize(("near", "kinds"), [("7", 3), ("0", 2), ("off", 1)])
def test_near_decides_what_counts_as_a_copy(near, kinds, folder, capsys) -> None:
    code, report = run_json(capsys, folder, "--near", near)
    assert code == 0
    assert report["near_bits"] == (None if near == "off" else int(near))
    assert len(report["leaks"]) in ({kinds} if near != "0" else {1, 2, 3})
    assert report["leaks"][0]["kind"] == "exact"


def test_one_split_can_be_looked_at(folder, capsys) -> None:
    code, report = run_json(capsys, folder, "--split", "test")
    assert (code, list(report["splits"]), report["images"], report["leaks"]) == (0, ["test"], 4, [])
    code, _, err = run(capsys, folder, "--split", "exam")
    assert code == 2
    assert "train, test" in err


def test_one_pile_is_split_by_fraction_and_seed(tmp_path, capsys) -> None:
    for number in range(40):
        save(tmp_path, f"{'ab'[number % 2]}/{number}.png", encoded(photo(number, 20, 20)))
    sizes = [run_json(capsys, tmp_path, "--val-fraction", share)[1]["splits"]["val"]["images"] for share in (0.1, 0.5)]
    assert sizes == [4, 20]
    clean = []
    for seed in (0, 0, 1):
        assert run(capsys, tmp_path, "--seed", seed, "--clean", tmp_path / "clean.csv")[0] == 0
        clean.append((tmp_path / "clean.csv").read_text())
        (tmp_path / "clean.csv").unlink()
    assert clean[0] == clean[1] != clean[2]


@pytest.mark.parametrize(("budget", "code"), [("0", 1), ("1", 0), ("5%", 1), ("10%", 0), ("100%", 0)])
def test_more_broken_than_allowed_is_said_after_the_report(budget, code, folder, capsys) -> None:
    found, out, err = run(capsys, folder, "--skip-broken", budget, "--json")
    assert found == code
    assert json.loads(out)["images"] == 14
    assert ("broken.jpg" in err) is bool(code)
    assert len(err.splitlines()) == code


def test_classes_that_only_the_test_has_are_shown_and_not_refused(folder, capsys) -> None:
    save(folder, "test/wasps/w.png", encoded(photo(99)))
    code, report = run_json(capsys, folder)
    assert code == 0
    assert report["classes"] == ["ants", "bees", "wasps"]
    assert report["splits"]["train"]["missing"] == ["wasps"]
    assert any("wasps" in note for note in report["notes"])


def test_unlabelled_files_and_one_class_are_surveyed(tmp_path, capsys) -> None:
    for number in range(20):
        save(tmp_path, f"flat/{number}.png", encoded(photo(number, 20, 20)))
        save(tmp_path, f"one/cats/{number}.png", encoded(photo(number, 20, 20)))
    code, report = run_json(capsys, tmp_path / "flat")
    assert (code, report["images"], report["classes"]) == (0, 20, [])
    assert run(capsys, tmp_path / "flat", "--sheet", tmp_path / "x.html")[0] == 0
    assert "no label" in run(capsys, tmp_path / "flat")[1]
    code, report = run_json(capsys, tmp_path / "one")
    assert (code, report["classes"]) == (0, ["cats"])
    assert any("one class" in note for note in report["notes"])


def test_one_image_is_surveyed(tmp_path, capsys) -> None:
    save(tmp_path, "cats/1.png", encoded(photo(1, 1, 1)))
    code, report = run_json(capsys, tmp_path, "--sheet", tmp_path.parent / "x.html")
    assert (code, report["images"], list(report["splits"])) == (0, 1, ["all"])
    assert report["notes"]


def test_arrays_have_no_files_to_list(tmp_path, capsys) -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 8, 8), dtype=np.uint8)
    labels = np.arange(30) % 3
    np.savez(tmp_path / "x.npz", x_train=images, y_train=labels, x_test=images[:3], y_test=labels[:3])
    code, report = run_json(capsys, tmp_path / "x.npz")
    assert (code, report["formats"], report["modes"]) == (0, {"array": 33}, {"L": 33})
    assert len(report["leaks"]) == 3
    code, out, err = run(capsys, tmp_path / "x.npz", "--clean", tmp_path / "clean.csv")
    assert (code, out) == (2, "")
    assert "not files of their own" in err
    assert not (tmp_path / "clean.csv").exists()


def test_nothing_is_written_when_nothing_is_left(tmp_path, capsys) -> None:
    for number in range(4):
        save(tmp_path, f"{'ab'[number % 2]}/{number}.png", b"broken")
    code, _, err = run(capsys, tmp_path, "--clean", tmp_path / "clean.csv")
    assert code == 2
    assert "nothing would be left" in err
    assert not (tmp_path / "clean.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere"),
        (["sample", "--near", "many"], "--near is 'many'"),
        (["sample", "--near", "12"], "from 0 to 11"),
        (["sample", "--near", "-1"], "--near"),
        (["sample", "--skip-broken", "some"], "'some' is not a budget"),
        (["sample", "--near", "9" * 5000], "from 0 to 11"),
        (["sample", "--image-size", "big"], "the image size is 'big'"),
        (["sample", "--image-size", "9" * 5000], "the image size is"),
        (["sample", "--image-size", "99999"], "at most 4096 pixels"),
        (["sample", "--sheet", "x.png"], "x.png is to be a contact sheet; give a name that ends in .html."),
        (["sample", "--sheet", "nowhere/x.html"], "there is no folder nowhere"),
        (["sample", "--clean", "nowhere/x.csv"], "there is no folder nowhere"),
        (["sample", "--clean", "x.txt"], "ends in .csv"),
        (["sample", "--val-fraction", "2"], "--val-fraction is 2.0"),
        (["sample", "--augment", "mild"], "--augment"),
        ([], "DATA is missing"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, message, capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert message in err


def test_an_empty_folder_is_refused(tmp_path, capsys) -> None:
    code, out, err = run(capsys, tmp_path)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("flag", ["--clean", "--sheet"])
def test_an_output_that_cannot_be_written_is_one_sentence(flag, folder, tmp_path, capsys) -> None:
    name = tmp_path / ("x.csv" if flag == "--clean" else "x.html")
    name.mkdir()
    code, _, err = run(capsys, folder, flag, name)
    assert code == 2
    assert "is a folder" in err
    code, _, err = run(capsys, folder, flag, tmp_path / ("x" * 300 + name.suffix))
    assert code == 2
    assert "File name too long" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_the_report_is_one_sentence(folder) -> None:
    command = f"{sys.executable} -m vitrail data {folder} --json > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_ctrl_c_during_a_scan_ends_at_once_with_130(tmp_path) -> None:
    data = encoded(photo(1, 1500, 1500))
    for number in range(400):
        save(tmp_path, f"{'ab'[number % 2]}/{number}.png", data)
    program = "import sys; print('on', flush=True); from vitrail.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "data", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    deadline = time.monotonic() + 60
    while len(os.listdir(f"/proc/{process.pid}/task")) < 2 and time.monotonic() < deadline:  # noqa: PTH208
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("vitrail: stopped by Ctrl-C.\n")
    assert "Traceback" not in err


def test_a_thousand_classes_are_cut_to_the_largest_and_smallest(capsys) -> None:
    counts = list(range(1, 101))
    report = {"data": "x", "images": sum(counts), "classes": [f"c{count}" for count in counts]}
    split = {"counts": counts, "images": sum(counts), "unlabelled": 0}
    print_tables([class_table({**report, "splits": {"train": split}})], data.Arguments(data="x"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:22]] == [f"c{count}" for count in range(100, 80, -1)]
    assert lines[42].split() == ["all", "5,050"]
    assert lines[43] == "The 20 largest and smallest of 100 classes; --json lists all."


def test_near_is_the_same_as_from_python() -> None:
    assert data.Arguments(data="sample").near == str(NEAR_BITS)
    assert f"0 to {MOST_BITS}" in inspect.getsource(data)


def test_progress_is_lines_now_and_then_where_there_is_no_terminal(capsys, monkeypatch) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(told.time, "monotonic", lambda: next(clock))
    assert list(told.progress(range(8), total=8, title="reading")) == list(range(8))
    err = capsys.readouterr().err.splitlines()
    assert err == ["reading: 3 of 8 (38%), 20 s left", "reading: 6 of 8 (75%), 8 s left"]


def test_progress_is_a_bar_on_a_terminal(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(told, "REFRESH", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    assert list(told.progress(iter("abc"), total=3, title="reading images")) == ["a", "b", "c"]
    assert "reading images" in screen.getvalue()
    assert "3/3" in screen.getvalue()


def test_links_to_elsewhere_are_listed_and_not_charged(folder, tmp_path, capsys) -> None:
    (folder / "train/bees/broken.jpg").unlink()
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (folder / "train/ants/link.jpg").symlink_to(tmp_path / "secret.jpg")
    code, report = run_json(capsys, folder, "--skip-broken", "0")
    assert (code, report["skipped"]) == (0, [])
    assert [Path(found["name"]).name for found in report["ignored"]] == ["link.jpg"]
    assert "Left alone" in run(capsys, folder)[1]


def test_a_clean_list_keeps_classes_that_are_called_numbers(tmp_path, capsys) -> None:
    for number, name in enumerate(["-5", "10", "2", "2"]):
        save(tmp_path, f"{name}/{number}.png", encoded(photo(number, 30, 20)))
    run_json(capsys, tmp_path, "--clean", tmp_path / "clean.csv")
    assert run_json(capsys, tmp_path / "clean.csv")[1]["classes"] == ["-5", "10", "2"]


def test_names_of_any_bytes_are_shown_and_listed_if_they_are_text(tmp_path, capsys) -> None:
    folder = os.fsencode(tmp_path / "photos")
    for number, name in enumerate([b"a\nb/\x1b[31m.png", b"a\nb/\r.png", b"\xff/1.png", b"c/\xff.png", b"c/2.png"]):
        path = os.path.join(folder, name)  # noqa: PTH118
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        Path(os.fsdecode(path)).write_bytes(b"\x1b" if b"\x1b" in name else encoded(photo(number, 30, 20)))
    clean = tmp_path / "photos/clean.csv"
    code, out, _ = run(capsys, tmp_path / "photos", "--clean", clean, "--sheet", tmp_path / "x.html")
    assert code == 0
    assert out.encode().isascii()
    assert "\x1b" not in out
    assert r"a\nb/\x1b[31m.png" in out
    assert out.count("its name is not UTF-8") == 2
    code, report = run_json(capsys, clean, "--skip-broken", "0")
    assert (code, report["images"], sorted(report["classes"])) == (0, 2, ["a\nb", "c"])
