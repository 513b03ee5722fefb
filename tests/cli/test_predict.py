"""`vitrail predict` as a person uses it: one photo, a folder, kills, ranks, and one sentence for what cannot be."""

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.data.pictures import photo
from tests.prediction.making import LABELS, saved_model, saved_photos
from vitrail.cli import predictions, streams
from vitrail.cli.main import main
from vitrail.cli.predictions import Screen, shortened
from vitrail.prediction.classifier import Classifier
from vitrail.prediction.folder import Listing
from vitrail.prediction.writers import Row

pytestmark = pytest.mark.usefixtures("unchecked")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_model(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return saved_photos(tmp_path / "photos", [f"{number}.png" for number in range(5)])


def test_one_photo_is_a_line_in_a_pipe(model: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(model), str(photos / "1.png"), "--top", "2", "--device", "cpu"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    name, label, probability, *rest = output.out.rstrip("\n").split("\t")
    expected = Classifier.load(model, device="cpu").predict(photos / "1.png", top=2)
    assert (name, label, len(rest)) == (str(photos / "1.png"), expected.label, 2)
    assert float(probability) == pytest.approx(expected.probability, abs=1e-6)


def test_json_has_every_image_and_every_error(model: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "2.png").write_bytes(b"no image")
    assert main(["predict", str(model), str(photos), "--json", "--top", "3"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert (found["images"], found["failed"]) == (5, 1)
    assert [row["path"] for row in found["predictions"]] == [str(photos / f"{number}.png") for number in range(5)]
    assert "it is not a JPEG" in found["predictions"][2]["error"]
    assert len(found["predictions"][0]["top"]) == 3
    assert "2.png: it is not a JPEG" in output.err
    assert "1 of 5 images could not be read" in output.err


def test_a_file_of_answers_is_told_and_counted(model: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "2.png").write_bytes(b"no image")
    out = photos / "x.csv"
    assert main(["predict", str(model), str(photos), "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert f"5 images in {out}: " in output.out
    assert "2.png: it is not a JPEG" in output.err
    assert "1 of 5 images could not be read; their rows" in output.err
    with out.open(newline="") as file:
        assert [row["path"] for row in csv.DictReader(file)] == [str(photos / f"{number}.png") for number in range(5)]
    assert main(["predict", str(model), str(photos), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["out"], told["images"], told["failed"], told["before"]) == (str(out), 5, 1, 0)
    assert sum(told["labels"].values()) == 4


def test_the_exit_code_is_1_only_if_no_image_could_be_read(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.jpg").write_bytes(b"no image")
    photo(1).save(tmp_path / "y.jpg")
    for out in ([], ["--out", str(tmp_path / "x.jsonl")]):
        assert main(["predict", str(model), str(tmp_path / "x.jpg"), *out]) == 1
        assert main(["predict", str(model), str(tmp_path / "x.jpg"), str(tmp_path / "y.jpg"), *out]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_a_stop_is_told_and_the_same_command_goes_on(
    model: Path, photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["predict", str(model), str(photos), "--out", str(photos / "x.csv"), "--batch", "2"]

    def stop(_: Listing, row: int) -> bytes:
        if row == 3:
            raise KeyboardInterrupt
        return (photos / f"{row}.png").read_bytes()

    with monkeypatch.context() as patched:
        patched.setattr(Listing, "read", stop)
        assert main(words) == 130
    assert "the same command resumes" in capsys.readouterr().err
    assert main(words) == 0
    assert "2 of 5 answers were there from before" in capsys.readouterr().out


def test_lists_come_from_stdin_and_labels_from_a_file(
    model: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "names.txt").write_text("\n".join("abcdefg"))
    listed = f"{photos / '3.png'}\n{photos / '3.png'}\n{photos / '0.png'}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(listed.encode())))
    assert main(["predict", str(model), "-", "--labels", str(tmp_path / "names.txt"), "--top", "1"]) == 0
    output = capsys.readouterr()
    rows = [line.split("\t") for line in output.out.splitlines()]
    assert [row[0] for row in rows] == [str(photos / "3.png"), str(photos / "0.png")]
    assert all(row[1] in "abcdefg" for row in rows)
    assert "1 images were named more than once" in output.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["MODEL"], "no images are given"),
        (["MODEL", "nowhere.jpg"], "nowhere.jpg: there is no such file"),
        (["nowhere.safetensors", "PHOTOS"], "there is no file or folder nowhere.safetensors"),
        (["MODEL", "PHOTOS", "--top", "0"], "--top is 0, but must be a whole number of at least 1"),
        (["MODEL", "PHOTOS", "--batch", "-1"], "--batch is -1, but must be a whole number of at least 1"),
        (["MODEL", "PHOTOS", "--out", "x.xlsx"], "ends in .csv or .jsonl or .parquet"),
        (["MODEL", "PHOTOS", "--out", "nowhere/x.csv"], "there is no folder nowhere"),
        (["MODEL", "PHOTOS", "--out", "PHOTOS"], "ends in .csv or .jsonl or .parquet"),
        (["MODEL", "EMPTY"], "holds no images"),
        (["MODEL", "PHOTOS", "--labels", "nowhere.txt"], "nowhere.txt cannot be read"),
        (["MODEL", "PHOTOS", "--image-size", "13"], "13"),
        (["MODEL", "PHOTOS", "--image-size", "big"], "the image size is 'big'"),
        (["MODEL", "PHOTOS", "--device", "cuda"], "cuda"),
        (["MODEL", "@nowhere.txt"], "nowhere.txt cannot be read"),
        (["HEADLESS", "PHOTOS"], "has no classes"),
        (["PHOTOS/0.png", "PHOTOS"], "0.png"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: list[str],
    said: str,
    model: Path,
    photos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch,
) -> None:
    (tmp_path / "empty").mkdir()
    headless = saved_model(tmp_path / "empty", labels=None, num_classes=0)
    (tmp_path / "empty" / "inner").mkdir()
    places = {"MODEL": model, "PHOTOS": photos, "EMPTY": tmp_path / "empty" / "inner", "HEADLESS": headless}
    monkeypatch.chdir(tmp_path)
    for short, place in places.items():
        words = [word.replace(short, str(place)) for word in words]
    assert main(["predict", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err
    assert "Traceback" not in output.err
    assert not list(tmp_path.glob("*.parts"))


def test_a_damaged_model_is_noticed_although_it_is_hashed_ahead(
    model: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(model.read_bytes())
    content[-5] ^= 1
    model.write_bytes(content)
    assert main(["predict", str(model), str(photos)]) == 2
    assert "is damaged" in capsys.readouterr().err


class Terminal(io.StringIO):
    """A terminal that keeps what is shown."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def shown(rows: list[Row], monkeypatch: pytest.MonkeyPatch, *, encoding: str = "utf-8") -> list[str]:
    terminal = Terminal()
    terminal.encoding = encoding
    with monkeypatch.context() as patched:
        patched.setattr(predictions.sys, "stdout", terminal)
        patched.setattr(streams.shutil, "get_terminal_size", lambda: os.terminal_size((80, 24)))
        screen = Screen([row.path for row in rows], json=False)
        for row in rows:
            screen.show(row)
    return terminal.getvalue().splitlines()


def test_a_terminal_shows_bars_whose_length_is_the_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(path="x.jpg", top=(("a bee", 0.75), ("an ant\x1b[31m", 0.125), ("moth", 0.0)))
    title, *lines = shown([row], monkeypatch)
    assert title == "x.jpg"
    assert [line.rsplit("  ", 1)[1].strip() for line in lines[:2]] == ["█" * 24, "█" * 4]
    assert lines[2].endswith(" 0.0%")
    assert "\x1b" not in lines[1]
    assert "\\x1b" in lines[1]
    assert shown([row], monkeypatch, encoding="ascii")[1].count("#") == 24
    eighth = Row(path="x.jpg", top=(("bee", 1 / 256),))
    assert shown([eighth], monkeypatch)[1].endswith("▏")


def test_a_terminal_shows_several_images_as_aligned_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Row(path=name, top=(("bee", 0.5), ("ant", 0.25))) for name in ("x.jpg", "longer/x.jpg", "y" * 99 + ".jpg")]
    lines = shown([*rows, Row(path="z.jpg", error="it is broken.")], monkeypatch)
    assert len(lines) == 3
    assert len({line.index("█") for line in lines}) == 1
    assert all(line.endswith("bee 50.0%, ant 25.0%") for line in lines)
    assert lines[2].startswith("..." + "y" * 41 + ".jpg")
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "...efg"


def test_asking_for_one_photo_imports_neither_the_compiler_nor_plots(model: Path, photos: Path) -> None:
    code = (
        "import sys; from vitrail.cli.main import main;"
        f"code = main(['predict', {str(model)!r}, {str(photos / '0.png')!r}]);"
        "heavy = ('matplotlib', 'pyarrow', 'rich', 'scipy', 'sympy', 'torch._dynamo', 'torch._inductor');"
        "print([name for name in heavy if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


WORDS = ("--device", "cpu", "--threads", "1", "--batch", "2")


def started(words: list[str], *, ranks: int = 1) -> subprocess.Popen[str]:
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *run, "-m", "vitrail", "predict", *words, *WORDS]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and the ranks that it has started, which have sessions of their own."""
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for number in (*map(int, ranks), process.pid):
        os.kill(number, signal.SIGKILL)
    process.communicate()


def answered(folder: Path) -> int:
    """Count the images with an answer, by the whole lines that are there; a broken image is tried again."""
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines(keepends=True)]
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return len({row for row, answer, _ in rows if isinstance(answer, list)})


@pytest.mark.slow
def test_killed_at_any_moment_on_any_number_of_ranks_each_image_is_answered_once(tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    big = vitrail.create("Ti/16", num_classes=7, seed=0)
    big.head.linear.weight.data.normal_()
    vitrail.save(big, model, labels=LABELS)
    photos = saved_photos(tmp_path / "photos", [f"{number:03d}.jpg" for number in range(160)])
    (photos / "077.jpg").write_bytes(b"no image")
    straight, out, parts = tmp_path / "straight.csv", tmp_path / "x.csv", tmp_path / "x.csv.parts"
    process = started([str(model), str(photos), "--out", str(straight)])
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    chance = random.Random(0)  # noqa: S311
    for ranks in (1, 2, 1, 2):
        before, asked = answered(parts), chance.randrange(1, 30)
        process = started([str(model), str(photos), "--out", str(out)], ranks=ranks)
        while answered(parts) < before + asked and process.poll() is None:
            time.sleep(0.01)
        assert process.poll() is None, process.communicate()[1]
        kill(process)
        assert not out.exists()
        time.sleep(0.1)
    before = answered(parts)
    process = started([str(model), str(photos), "--out", str(out)], ranks=2)
    told, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert f"{before} of 160 answers were there" in told
    with straight.open(newline="") as one, out.open(newline="") as other:
        expected, found = list(csv.reader(one)), list(csv.reader(other))
    assert [row[0] for row in found] == [row[0] for row in expected]
    assert len(found) == 161
    assert [row[1] for row in found] == [row[1] for row in expected]
    probabilities = [[float(row[2]) for row in rows[1:] if row[2]] for rows in (found, expected)]
    np.testing.assert_allclose(*probabilities, atol=1e-5)
    assert not parts.exists()


@pytest.mark.slow
def test_ranks_say_one_sentence_when_the_first_cannot_begin(tmp_path: Path) -> None:
    model = saved_model(tmp_path)
    process = started([str(model), str(tmp_path / "nowhere"), "--out", str(tmp_path / "x.csv")], ranks=2)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert said.count("vitrail: ") == 1
    assert "there is no such file" in said
    process = started([str(model), str(tmp_path)], ranks=2)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "name it with --out" in said
