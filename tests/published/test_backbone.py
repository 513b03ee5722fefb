"""The backbone inside the package: whole, small, known by its name everywhere, and of use on few images."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from vitrail.base.errors import CheckpointError, ConfigError, InputError
from vitrail.cli.main import main
from vitrail.published.bundled import BACKBONE, backbone_path
from vitrail.published.find import find_published, model_name

ROOT = Path(__file__).parents[2]
CARD = (ROOT / "docs/backbone.md").read_text()
QUICK = ("--steps", "2", "--batch", "8", "--threads", "1", "--device", "cpu")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes that differ in colour: 24 training and 12 test images of 40x56 pixels."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 120, (36, 40, 56, 3), dtype=np.uint8)
    labels = np.arange(36) % 2
    images[labels == 1, :, :, 0] += 120
    path = tmp_path_factory.mktemp("photos") / "photos.npz"
    split = {"x_train": images[:24], "y_train": labels[:24], "x_test": images[24:], "y_test": labels[24:]}
    np.savez(path, **split, class_names=np.array(["blue", "red"]))
    return path


def test_the_file_is_small_whole_and_the_one_of_the_card() -> None:
    assert backbone_path().stat().st_size <= 8_000_000
    check = vitrail.verify(BACKBONE)
    assert check.good
    assert check.digest is not None
    assert check.digest in CARD
    assert vitrail.show(backbone_path()).types == ("float16",)


def test_the_file_is_part_of_the_wheel() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/vitrail"]
    assert backbone_path().is_relative_to(ROOT / "src/vitrail")
    assert (backbone_path().parent / "NOTICE").is_file()


def test_it_states_where_it_comes_from() -> None:
    provenance = vitrail.load(BACKBONE).info.provenance
    assert provenance["command"].startswith("vitrail train ")
    assert provenance["command"] in CARD
    assert "ImageNet" in provenance["licence"]
    assert provenance["metrics"]["steps"] >= 750
    assert provenance["data"]


def test_it_computes_finite_features_in_float32() -> None:
    model = vitrail.load(BACKBONE)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    images = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.no_grad():
        features = model.features(images)
    assert features.isfinite().all()
    assert features.std(0).min() > 0  # images differ in every feature
    assert model.config.num_classes == 0


def test_the_name_stands_for_it_unless_a_file_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = find_published(BACKBONE)
    assert place is not None
    assert (place.path, model_name(BACKBONE)) == (backbone_path(), BACKBONE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / BACKBONE).mkdir()
    assert find_published(BACKBONE) is None
    with pytest.raises((CheckpointError, InputError)):
        vitrail.load(BACKBONE)


def test_it_is_not_pulled_and_does_not_classify(photos: Path) -> None:
    with pytest.raises(ConfigError, match="part of the package"):
        vitrail.pull(BACKBONE)
    with pytest.raises(InputError, match="has no head"):
        vitrail.evaluate(BACKBONE, photos)


@pytest.mark.usefixtures("unchecked")
def test_finetune_begins_with_it_and_says_so(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["finetune", str(photos), *QUICK]) == 0
    assert "beginning with the backbone" in capsys.readouterr().err
    run = tmp_path / "runs" / "photos.npz-from-backbone"
    config = json.loads((run / "config.json").read_text())
    assert (config["start"]["path"], config["start"]["digest"]) == (BACKBONE, vitrail.show(BACKBONE).digest)
    assert config["optimizer"]["name"] == "muon"
    assert main(["finetune", str(photos), "--from", "backbone", *QUICK]) == 0  # the same run, which is finished
    assert "beginning with" not in capsys.readouterr().err
    assert main(["finetune", "--resume", str(run), "--threads", "1"]) == 0


@pytest.mark.parametrize("changes", [{"image_size": (48, 80)}, {"image_size": 32}, {"frozen": True}], ids=str)
def test_other_sizes_and_grey_images_work(changes: dict, photos: Path, tmp_path: Path) -> None:
    arrays = dict(np.load(photos))
    grey = {name: value[..., 0] if name.startswith("x_") else value for name, value in arrays.items()}
    np.savez(tmp_path / "grey.npz", **grey)
    run = vitrail.finetune(
        tmp_path / "grey.npz", **changes, steps=1, batch=4, device="cpu", threads=1, out=tmp_path / "run", quiet=True
    )
    size = changes.get("image_size", run.model.config.image_size)
    assert run.model.config.image_size == ((size, size) if isinstance(size, int) else size)
    assert (run.model.config.channels, run.accuracy is not None) == (3, True)


def test_few_shots_of_it_tell_two_classes_apart(photos: Path) -> None:
    result = vitrail.fewshot(BACKBONE, photos, shots=[5], seeds=2, cache=False, device="cpu", threads=1)
    assert result.scores[0].mean > 0.9


@pytest.mark.usefixtures("unchecked")
def test_training_on_few_photos_names_the_better_way(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(photos), *QUICK, "--image-size", "32", "--out"]
    assert main([*words, str(tmp_path / "a")]) == 0
    assert "vitrail finetune" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "b"), "--model", "Ti/16"]) == 0
    assert "vitrail finetune" not in capsys.readouterr().err
