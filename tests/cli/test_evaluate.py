"""`vitrail evaluate` as a person uses it: tables, JSON, CSV, a page, and one sentence for each thing that cannot be."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn import metrics

import vitrail
from tests.data.making import picture
from tests.tiny import perturbed, vit_config
from tests.training.making import CLASSES, made_dataset
from vitrail.cli.main import main
from vitrail.data.transforms import normalise, preprocess
from vitrail.evaluation.real import IMAGES

pytestmark = pytest.mark.usefixtures("unchecked")
ROOT = Path(__file__).parents[2]
QUICK = ("--threads", "1", "--device", "cpu", "--bootstrap", "100")
SMALL = {"image_size": (8, 8), "patch_size": (4, 4)}


def model_file(path: Path, labels: tuple[str, ...] | None = CLASSES, **changes: object) -> Path:
    """A model with weights that answer something."""
    model = perturbed(vit_config(**SMALL | {"num_classes": len(labels or CLASSES)} | changes), by=0.5)
    preprocessing = vitrail.Preprocessing(
        image_size=(8, 8), mean=(0.5,) * model.config.channels, std=(0.5,) * model.config.channels
    )
    return vitrail.save(model, path, labels=labels, preprocessing=preprocessing)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_file(tmp_path_factory.mktemp("model") / "model.safetensors")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders in another order than the model's classes, with one split."""
    folder = tmp_path_factory.mktemp("data")
    made = made_dataset(24)
    for index, image in enumerate(made.pictures.images):  # type: ignore[attr-defined]
        path = folder / "test" / CLASSES[made.targets[index]] / f"{index:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    assert main(["evaluate", *map(str, words), *QUICK]) == code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, captured.err


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What is said on a command that is refused; nothing goes to stdout."""
    out, err = run(capsys, *words, code=2)
    assert out == ""
    assert err.count("vitrail: ") >= 1
    return err


def _by_hand(path: Path, dataset: vitrail.data.Dataset) -> np.ndarray:
    """The logits of every image, one at a time."""
    model = vitrail.load(path)
    inputs = [
        normalise(preprocess(dataset.image(at), model.info.preprocessing)[None], model.info.preprocessing)
        for at in range(len(dataset))
    ]
    return np.concatenate([model(one).detach().numpy() for one in inputs])


def test_the_figures_are_those_of_scikit_learn_on_answers_made_by_hand(
    model: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(run(capsys, model, data, "--json", "--batch", 5)[0])
    dataset = vitrail.data.open(data, split="test", labels=CLASSES)
    predicted = _by_hand(model, dataset).argmax(1)
    assert told["images"] == 24
    assert told["split"] == "test"
    assert told["accuracy"]["value"] == pytest.approx(metrics.accuracy_score(dataset.targets, predicted))
    assert told["macro_f1"]["value"] == pytest.approx(
        metrics.f1_score(dataset.targets, predicted, average="macro", zero_division=0)
    )
    matrix = np.zeros((3, 3), int)
    for truth, answer, images in told["confusion"]:
        matrix[truth, answer] = images
    np.testing.assert_array_equal(matrix, metrics.confusion_matrix(dataset.targets, predicted, labels=range(3)))
    assert [each["name"] for each in told["classes"]] == list(CLASSES)
    assert told["sha256"] == vitrail.load(model).info.digest


@pytest.mark.parametrize("flags", [("--batch", "1"), ("--batch", "64"), ("--workers", "2")])
def test_how_the_work_is_done_changes_no_figure(
    model: Path, data: Path, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (json.loads(run(capsys, model, data, "--json", *words)[0]) for words in (("--batch", "7"), flags))
    assert one["confusion"] == other["confusion"]
    for name in ("accuracy", "macro_f1", "loss", "ece"):
        assert one[name] == pytest.approx(other[name], rel=1e-5)


def test_the_table_has_figures_classes_and_confusions(
    model: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = run(capsys, model, data)
    for wanted in (
        "accuracy",
        "macro F1",
        "calibration error (ECE)",
        "loss (NLL)",
        "95% interval",
        "Classes, the worst",
    ):
        assert wanted in out
    assert f"on the test split of {data}" in " ".join(out.split())
    assert "24 images, scored over 3 classes" in out
    assert "top-5" not in out
    assert err == ""


def test_the_csv_and_the_page_are_written(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, page = tmp_path / "all.csv", tmp_path / "page.html"
    out, err = run(capsys, model, data, "--csv", table, "--html", page, "--json")
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    right = np.mean([row["right"] == "1" for row in rows])
    assert right == pytest.approx(json.loads(out)["accuracy"]["value"])
    assert all(row["truth"] == Path(row["image"]).parent.name for row in rows)
    text = page.read_text()
    assert all(heading in text for heading in ("Confusions", "Calibration", "Most confident mistakes", *CLASSES))
    assert str(table) in err
    assert str(page) in err


def test_some_of_the_classes_are_scored_among_themselves(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "some"
    for label in ("left", "dark"):
        (folder / label.upper()).mkdir(parents=True)
        for file in (data / "test" / label).iterdir():
            (folder / label.upper() / file.name).write_bytes(file.read_bytes())
    out, err = run(capsys, model, folder)
    assert "scored over 2 of 3 classes" in out
    assert "scored over 2 of 3 classes, those that" in err
    assert f"on all of {folder}" in " ".join(out.split())
    told = json.loads(run(capsys, model, folder, "--json", "--all-classes")[0])
    assert (told["scored_classes"], told["model_classes"]) == (3, 3)
    for file in (folder / "DARK").iterdir():
        file.unlink()
    (folder / "DARK").rmdir()
    assert "only one class of the model, left" in said(capsys, model, folder)


def test_a_class_map_groups_classes_and_counts_what_it_leaves_out(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "map.json"
    path.write_text('{"dark": "dark", "left": ["bright", 2]}')
    out, err = run(capsys, model, data, "--class-map", path, "--json")
    told = json.loads(out)
    assert told["images"] == 16
    assert [each["name"] for each in told["classes"]] == ["dark", "left"]
    assert "8 images of 1 classes are left out: bright." in err
    path.write_text('{"dark": "drak"}')
    assert "names 1 classes" in (message := said(capsys, model, data, "--class-map", path))
    assert "drak" in message


def test_classes_that_do_not_match_are_listed(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for label in ("ants", "bees"):
        (tmp_path / "insects" / label).mkdir(parents=True)
        (tmp_path / "insects" / label / "1.png").write_bytes(picture())
    err = said(capsys, model, tmp_path / "insects")
    assert "has 2 classes that the model lacks: ants, bees. The model has 3: dark, bright, left" in err


def test_a_model_without_labels_needs_them(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = model_file(tmp_path / "bare.safetensors", labels=None)
    assert "no class names" in said(capsys, bare, data)
    names = tmp_path / "names.txt"
    names.write_text("\n".join(CLASSES))
    named = json.loads(run(capsys, bare, data, "--labels", names, "--json")[0])
    assert [each["name"] for each in named["classes"]] == list(CLASSES)
    names.write_text("dark\nbright\n")
    assert "has 2 names, but the model has 3 classes" in said(capsys, bare, data, "--labels", names)


def test_grey_images_meet_a_colour_model_but_four_channels_do_not(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(0)
    for channels in (1, 4):
        images = generator.integers(0, 255, (6, 8, 8, channels), dtype=np.uint8)
        np.savez(
            tmp_path / f"{channels}.npz",
            x_test=images[..., 0] if channels == 1 else images,
            y_test=np.arange(6) % 3,
            class_names=np.array(CLASSES),
        )
    assert json.loads(run(capsys, model, tmp_path / "1.npz", "--json")[0])["images"] == 6
    assert "an image of 4 channels cannot become one of 3" in said(capsys, model, tmp_path / "4.npz")


def test_images_of_another_size_resize_the_positions(
    model: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = run(capsys, model, data, "--image-size", "16", "--json")
    assert json.loads(out)["images"] == 24
    assert "positions were resized from a grid of 2x2 to 4x4" in err


def test_a_file_that_does_not_say_how_images_become_input_is_guessed_about_aloud(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = vitrail.save(perturbed(vit_config(**SMALL, num_classes=3)), tmp_path / "bare.safetensors", labels=CLASSES)
    assert "how images become its input" in run(capsys, path, data, "--json")[1]


def test_a_truncated_image_ends_the_work_with_its_name_unless_it_may_be_skipped(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "broken"
    for file in (data / "test").glob("*/*.png"):
        (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
        (folder / file.parent.name / file.name).write_bytes(file.read_bytes())
    victim = next((folder / "dark").iterdir())
    victim.write_bytes(victim.read_bytes()[:50])
    assert victim.name in said(capsys, model, folder, "--csv", tmp_path / "never.csv")
    assert not (tmp_path / "never.csv").exists()
    out, err = run(capsys, model, folder, "--skip-broken", "5%", "--json")
    told = json.loads(out)
    assert told["images"] == 23
    assert [each["name"] for each in told["skipped"]] == [str(victim)]
    assert f"left out: {victim}" in err


def test_reals_labels_are_measured_beside_top_1_or_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tuple(f"n{number:08d}" for number in range(1000))
    path = model_file(tmp_path / "imagenet.safetensors", labels=labels, num_classes=1000)
    flat = tmp_path / "flat"
    for number in range(1, 7):
        flat.mkdir(exist_ok=True)
        Image.fromarray(made_dataset(6).pictures.images[number - 1]).save(  # type: ignore[attr-defined]
            flat / f"ILSVRC2012_val_{number:08d}.JPEG"
        )
    logits = _by_hand(path, vitrail.data.open(flat))
    lists: list[list[int]] = [[] for _ in range(IMAGES)]
    lists[0], lists[1], lists[2] = [int(logits[0].argmax())], [int(logits[1].argmin())], [5, int(logits[2].argmax())]
    real = tmp_path / "real.json"
    real.write_text(json.dumps(lists))
    table = tmp_path / "real.csv"
    told = json.loads(
        run(capsys, path, flat, "--real", real, "--json", "--csv", table, "--html", tmp_path / "r.html")[0]
    )
    assert told["real"]["images"] == 3
    assert told["real"]["value"] == pytest.approx(2 / 3)
    assert "accuracy" not in told
    with table.open(newline="") as file:
        assert [row["real"] for row in csv.DictReader(file)] == ["1", "0", "1", "", "", ""]
    out, _ = run(capsys, path, flat, "--real", real)
    assert "ReaL accuracy" in out
    assert "3 images with labels of ReaL" in out
    sorted_by_class = tmp_path / "sorted"
    for number in range(1, 7):
        folder = sorted_by_class / labels[int(logits[number - 1].argmax())]
        folder.mkdir(parents=True, exist_ok=True)
        name = f"ILSVRC2012_val_{number:08d}.JPEG"
        (folder / name).write_bytes((flat / name).read_bytes())
    told = json.loads(run(capsys, path, sorted_by_class, "--real", real, "--json")[0])
    assert told["accuracy"]["value"] == 1.0
    assert told["real"]["value"] == pytest.approx(2 / 3)
    assert told["scored_classes"] == 1000
    words = model_file(tmp_path / "words.safetensors", labels=tuple(f"word {at}" for at in range(1000)))
    out, err = run(capsys, words, sorted_by_class, "--real", real, "--json")
    assert "only ReaL is measured" in err
    assert "classes that the model lacks" in err
    assert json.loads(out)["real"]["images"] == 3
    assert "accuracy" not in json.loads(out)


def test_reals_labels_need_their_images_their_classes_and_their_length(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / "real.json"
    real.write_text("[[1], [2]]")
    assert "is a list of 2, but ReaL" in said(capsys, model, data, "--real", real)
    real.write_text(json.dumps([[1]] * IMAGES))
    assert "the model has 3 classes, but ReaL's labels" in said(capsys, model, data, "--real", real)
    wide = model_file(tmp_path / "wide.safetensors", labels=(*CLASSES, *map(str, range(997))))
    assert "24 of 24 images" in said(capsys, wide, data, "--real", real)
    both = ("--real", real, "--class-map", real)
    assert "leave one out" in said(capsys, wide, data, *both)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--batch", "0"), "batch is 0, but must be a whole number of at least 1"),
        (("--workers", "-1"), "workers is -1, but must be a whole number of at least 0"),
        (("--bootstrap", "3"), "--bootstrap is 3, but must be a whole number of at least 100"),
        (("--split", "tset"), "no tset. Did you mean test?"),
        (("--image-size", "9"), "9"),
        (("--skip-broken", "few"), "not a budget of broken files"),
        (("--csv", "nowhere/all.csv"), "there is no folder nowhere to write all.csv into"),
        (("--csv", "all.txt"), "give a name that ends in .csv"),
        (("--html", "/"), "give a name that ends in .html"),
        pytest.param(
            ("--html", "/proc/page.html"),
            "/proc may not be written to",
            marks=pytest.mark.skipif(
                sys.platform != "linux", reason="nowhere else is a folder that nobody can write to"
            ),
        ),
        (("--labels", "nowhere.txt"), "nowhere.txt cannot be read"),
        (("--class-map", "nowhere.json"), "nowhere.json cannot be read"),
        (("--device", "cuda"), "cuda"),
        (("--num-heads", "3"), "--num-heads 3"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    model: Path, data: Path, flags: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = [word for flag in zip(QUICK[::2], QUICK[1::2], strict=True) if flag[0] != flags[0] for word in flag]
    assert main(["evaluate", str(model), str(data), *rest, *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err


def test_models_and_data_that_are_none_are_one_sentence(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no file or folder" in said(capsys, tmp_path / "nothing.safetensors", data)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no images" in said(capsys, model, empty)
    assert "nowhere" in said(capsys, model, tmp_path / "nowhere")
    letter = tmp_path / "letter.safetensors"
    letter.write_text("dear model")
    assert str(letter) in said(capsys, letter, data)
    headless = vitrail.save(perturbed(vit_config(**SMALL, num_classes=0)), tmp_path / "headless.safetensors")
    assert "has no head" in said(capsys, headless, data)
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "1.png").write_bytes(picture())
    assert "has no image with a class to compare answers with" in said(capsys, model, flat)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to_is_refused_before_the_work(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o500)
    assert "may not be written to" in said(capsys, model, data, "--html", tmp_path / "page.html")


@pytest.mark.slow
def test_ctrl_c_ends_the_work_with_a_sentence_and_leaves_no_file(model: Path, tmp_path: Path) -> None:
    images = np.zeros((60_000, 8, 8), np.uint8)
    np.savez(tmp_path / "many.npz", x_test=images, y_test=np.arange(60_000) % 3)
    out = tmp_path / "out.csv"
    words = [sys.executable, "-m", "vitrail", "evaluate", str(model), str(tmp_path / "many.npz"), "--csv", str(out)]
    process = subprocess.Popen([*words, "--batch", "2", "--threads", "1"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "taken as places" in process.stderr.readline()  # said before the work
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "stopped by Ctrl-C" in told
    assert "Traceback" not in told
    assert list(tmp_path.glob("*.csv*")) == []


def _launch(words: list[str], ranks: int) -> subprocess.CompletedProcess[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *launcher, "-m", "vitrail", "evaluate", *words, "--threads", "1", "--device", "cpu"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_two_ranks_count_every_image_once_and_print_once(model: Path, data: Path, tmp_path: Path) -> None:
    told = []
    for ranks in (1, 2):
        done = _launch(
            [str(model), str(data), "--json", "--batch", "5", "--csv", str(tmp_path / f"{ranks}.csv")], ranks
        )
        assert done.returncode == 0, done.stderr[-3000:]
        told.append(json.loads(done.stdout))
    one, two = told
    assert one["confusion"] == two["confusion"]
    assert one["images"] == two["images"] == 24
    assert one["accuracy"] == two["accuracy"]
    assert one["loss"] == pytest.approx(two["loss"], rel=1e-6)
    first, second = (list(csv.reader((tmp_path / f"{ranks}.csv").read_text().splitlines())) for ranks in (1, 2))
    assert [row[:4] for row in first] == [row[:4] for row in second]


@pytest.mark.slow
def test_two_ranks_share_one_budget_of_broken_images(model: Path, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    files = sorted((data / "test").glob("*/*.png"))
    for place, file in enumerate(files):
        (folder / file.parent.name).mkdir(parents=True, exist_ok=True)
        whole = file.read_bytes()
        (folder / file.parent.name / file.name).write_bytes(whole[:50] if place in (0, len(files) - 1) else whole)
    refused = _launch([str(model), str(folder), "--skip-broken", "1"], 2)
    assert refused.returncode != 0
    assert "2 of 24 images are broken or missing, and 1 may be" in refused.stderr
    done = _launch([str(model), str(folder), "--skip-broken", "2", "--json"], 2)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["images"] == 22
    assert len(told["skipped"]) == 2
