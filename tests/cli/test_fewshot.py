"""`vitrail fewshot` as a person uses it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.tiny import perturbed, resnet_config, vit_config
from tests.training.making import CLASSES, made_dataset
from vitrail.cli.main import main
from vitrail.data.subsets import few_shot
from vitrail.evaluation.ridge import ridge

pytestmark = pytest.mark.usefixtures("unchecked")
ROOT = Path(__file__).parents[2]
QUICK = ("--threads", "1", "--device", "cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep features out of the home of whoever runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / "vitrail" / "features"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "made.npz"
    train, test = made_dataset(60), made_dataset(21, seed=1)
    arrays = {"x_train": train.pictures.images, "x_test": test.pictures.images}
    np.savez(path, **arrays, y_train=train.targets, y_test=test.targets, class_names=np.array(CLASSES))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = vit_config(image_size=(8, 8), patch_size=(4, 4), num_classes=3, pool="mean")
    return vitrail.save(perturbed(config), tmp_path_factory.mktemp("model") / "model.safetensors")


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert main(["fewshot", *words, *QUICK, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_table_has_a_row_for_each_number_of_shots_and_a_column_for_each_method(
    model: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fewshot", str(model), str(data), "--shots", "1", "5", "all"]
    assert main([*words, "--methods", "ridge", "neighbours", "probe", *QUICK]) == 0
    title, _, table = capsys.readouterr().out.strip().partition("\nshots")
    header, *rows, note = f"shots{table}".splitlines()
    assert "21 images of test, 3 classes" in " ".join(title.split())
    assert header.split() == ["shots", "images", "ridge", "neighbours", "probe"]
    assert [row.split()[:2] for row in rows] == [["1", "3"], ["5", "15"], ["all", "60"]]
    assert [row.count("+-") for row in rows] == [3, 3, 0]
    assert "standard deviation over 3 draws" in note


def test_json_has_every_accuracy_and_they_are_those_of_the_classifier(
    model: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told([str(model), str(data), "--shots", "4", "--seeds", "2"], capsys)
    assert (found["split"], found["images"], found["classes"]) == ("test", 21, 3)
    assert found["preprocessing"]["geometry"] == "square"
    (row,) = found["results"]
    assert (row["shots"], row["method"], row["training_images"]) == (4, "ridge", 12)
    loaded = vitrail.load(model).double()
    splits = vitrail.data.open_splits(data)

    def features(dataset):
        import torch

        pixels = torch.stack([dataset.image(at) for at in range(len(dataset))])
        with torch.no_grad():
            return loaded.features(pixels.double() / 127.5 - 1).float()

    test = splits["test"]
    for seed, accuracy in enumerate(row["accuracies"]):
        drawn = few_shot(splits["train"], 4, seed)
        answers = ridge(features(drawn), drawn.targets, 3, features(test))["ridge"]
        assert accuracy == pytest.approx(float((answers == test.targets).mean()))
    assert row["mean"] == pytest.approx(np.mean(row["accuracies"]))
    assert row["std"] == pytest.approx(np.std(row["accuracies"], ddof=1))


def test_features_are_kept_and_give_the_same_again(
    model: Path, data: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(model), str(data), "--shots", "2", "5"]
    first = told(words, capsys)
    files = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert len(files) == 2  # what was drawn, and the test images
    assert told(words, capsys) == first
    assert told([*words, "--methods", "neighbours", "ridge"], capsys)["results"][1] == first["results"][0]
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == files


def test_without_a_cache_nothing_is_kept_and_another_folder_can_be_named(
    model: Path, data: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(model), str(data), "--shots", "2"]
    first = told([*words, "--no-cache"], capsys)
    assert not cache.exists()
    assert told([*words, "--cache", str(tmp_path / "here")], capsys) == first
    assert len(list((tmp_path / "here").iterdir())) == 2
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_or_is_damaged_costs_a_note_only(
    model: Path, data: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fewshot", str(model), str(data), "--shots", "2", "--json", *QUICK]
    (tmp_path / "file").write_text("in the way")
    assert main([*words, "--cache", str(tmp_path / "file")]) == 0
    captured = capsys.readouterr()
    assert "used, but not stored" in captured.err
    assert main(words) == 0
    for file in cache.iterdir():
        file.write_bytes(file.read_bytes()[:-7])
    capsys.readouterr()
    assert main(words) == 0
    again = capsys.readouterr()
    assert again.err.count("computed again") == 2
    assert again.out == captured.out


def test_a_picture_is_drawn(model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "shots.svg"
    told([str(model), str(data), "--shots", "1", "5", "all", "--plot", str(path)], capsys)
    assert "ridge" in path.read_text()


def test_grey_images_a_resnet_and_another_size_will_do(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grey = tmp_path / "grey.npz"
    images = np.random.default_rng(0).integers(0, 256, (24, 28, 28), dtype=np.uint8)
    targets = np.arange(24) % 3
    np.savez(grey, x_train=images, y_train=targets, x_test=images[:9], y_test=targets[:9])
    resnet = vitrail.save(perturbed(resnet_config(image_size=(32, 32))), tmp_path / "resnet.safetensors")
    for words in ([str(model)], [str(resnet)], [str(model), "--image-size", "16", "--preprocessing", "model"]):
        found = told([words[0], str(grey), *words[1:], "--shots", "2", "--l2", "1", "1024"], capsys)
        assert [row["method"] for row in found["results"]] == ["ridge l2=1", "ridge l2=1024"]
    assert found["preprocessing"]["image_size"] == [16, 16]


def test_a_broken_image_is_named_unless_it_may_be_skipped(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    folder = tmp_path / "photos"
    for index, image in enumerate(made_dataset(36).pictures.images):
        path = folder / ("train" if index < 24 else "test") / CLASSES[index % 3] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    (folder / "test" / CLASSES[0] / "30.png").write_bytes(b"broken")
    words = ["fewshot", str(model), str(folder), "--shots", "3", *QUICK]
    assert main(words) == 2
    assert "30.png" in capsys.readouterr().err
    assert told([str(model), str(folder), "--shots", "3", "--skip-broken", "1"], capsys)["images"] == 11


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shots", "21"], "classes with fewer than 21 images"),
        (["--shots", "0"], "--shots is given '0'"),
        (["--shots", "some"], "--shots is given 'some'"),
        (["--seeds", "0"], "--seeds is 0"),
        (["--l2", "0"], "--l2 is 0.0"),
        (["--probe-c", "-1"], "--probe-c is -1.0"),
        (["--neighbours", "0"], "--neighbours is 0"),
        (["--methods", "forest"], "takes one of"),
        (["--plot", "shots.pdf"], "ends in .svg or .png"),
        (["--plot", "nowhere/shots.svg"], "there is no folder nowhere"),
        (["--shots", "1", "--batch", "0"], "batch is 0"),
        (["--device", "cuda"], "cuda"),
    ],
)
def test_what_cannot_be_is_one_sentence_before_the_work(
    words: list[str], said: str, model: Path, data: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fewshot", str(model), str(data), *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not cache.exists()


def test_a_model_or_data_that_is_not_there_is_one_sentence(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fewshot", str(tmp_path / "no.safetensors"), str(data), "--shots", "1"]) == 2
    assert "no.safetensors" in capsys.readouterr().err
    assert main(["fewshot", str(model), str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err
    only = tmp_path / "only.npz"
    test = made_dataset(9)
    np.savez(only, x_test=test.pictures.images, y_test=test.targets)
    assert main(["fewshot", str(model), str(only)]) == 2
    assert "train is needed to draw from" in capsys.readouterr().err


def test_channels_that_do_not_fit_are_one_sentence(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = vit_config(image_size=(8, 8), patch_size=(4, 4), channels=5)
    pixels = vitrail.Preprocessing(image_size=(8, 8), mean=(0.5,) * 5, std=(0.5,) * 5)
    five = vitrail.save(perturbed(config), tmp_path / "five.safetensors", preprocessing=pixels)
    assert main(["fewshot", str(five), str(data), "--shots", "1", *QUICK]) == 2
    error = capsys.readouterr().err
    assert "channels" in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.slow
def test_two_ranks_give_what_one_gives(model: Path, data: Path, tmp_path: Path) -> None:
    words = ["fewshot", str(model), str(data), "--shots", "1", "5", "all", "--methods", "ridge", "neighbours", "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "vitrail"]
    found = []
    for program, cache in ((["-m", "vitrail"], "one"), (ranks, "two"), (ranks, "two")):
        done = subprocess.run(
            [sys.executable, *program, *words, "--cache", str(tmp_path / cache)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1] == found[2]
    assert {path.name for path in (tmp_path / "one").iterdir()} == {path.name for path in (tmp_path / "two").iterdir()}
