import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.report.pages import read, words
from tests.tiny import perturbed, resnet_config, vit_config

QUIET = {"note": lambda _: None}
FEW = ["occlusion-random", "fog", "pgd"]


@pytest.fixture
def resnet(workplace: Path) -> Path:
    model = perturbed(resnet_config(image_size=(16, 16), num_classes=2), by=0.3)
    pixels = vitrail.Preprocessing(image_size=(16, 16))
    return vitrail.save(model, workplace / "resnet.safetensors", labels=["bee", "ant"], preprocessing=pixels)


def test_the_files_hold_what_the_result_says(workplace: Path, resnet: Path) -> None:
    out = workplace / "stressed"
    settings = {"tests": FEW, "severities": [2, 5], "steps": 2, "batch": 3, "resamples": 100}
    result = vitrail.stress(["model.safetensors", resnet], "photos", out=out, **settings, **QUIET)
    assert result.models[1] == "resnet"
    assert len(result.images) == 8
    figures = json.loads((out / "stress.json").read_text())
    with (out / "stress.csv").open() as file:
        rows = list(csv.DictReader(file))
    for number, model in enumerate(result.models):
        fog = [row for row in rows if row["model"] == model and row["test"] == "fog"]
        points = result.curve(model, "fog")
        assert [float(row["accuracy"]) for row in fog] == [point.accuracy.value for point in points]
        assert [int(row["level"]) for row in fog] == [2, 5]
        stored = figures["models"][number]["tests"]["fog"]
        assert [level["value"] for level in stored["levels"]] == [point.accuracy.value for point in points]
        assert [bits.count("1") / 8 for bits in stored["right"]] == [point.accuracy.value for point in points]
    assert figures["settings"]["seed"] == 0
    assert figures["models"][0]["mean_corruption_error"]["value"] in (1.0, None)  # None where it makes no errors
    for name in (*(f"charts/{test}" for test in FEW), "curves"):
        assert (out / f"{name}.svg").read_bytes().startswith(b"<?xml")
        with Image.open(out / f"{name}.png") as picture:
            assert picture.size[0] > 300
    page = words(read((out / "stress.html").read_text()))
    assert f"Under stress: {result.models[0]}, resnet" in page
    assert "Naseer" in page
    assert "PGD attack" in page
    assert "Beside what was published" in repr(result)
    narrow, wide = result.tables()[-1], result.tables(wide=True)[-1]
    assert [row[:-1] for row in wide.rows] == list(narrow.rows)
    assert all(any(row[-1] in note for note in narrow.notes) for row in wide.rows)
    assert narrow.notes[0].endswith("What was published:")
    assert wide.notes[0].endswith("that is left.")
    assert "Mean over 1 corruption" in page
    assert "Mean over 1 corruptions" not in page
    assert result._repr_html_()
    again = vitrail.stress(["model.safetensors", resnet], "photos", **settings, **QUIET).to_dict()
    assert again == {name: value for name, value in result.to_dict().items() if name not in ("folder", "page")}


@pytest.mark.usefixtures("workplace")
def test_clean_accuracy_is_what_evaluate_measures() -> None:
    result = vitrail.stress("model.safetensors", "photos", tests="grid", resamples=100, **QUIET)
    score = vitrail.evaluate("model.safetensors", "photos", resamples=100, **QUIET)
    assert result.summaries[0].clean.value == score.accuracy
    assert [bool(bit == "1") for bit in result.to_dict()["models"][0]["clean_right"]] == (
        score.answers.predicted == score.answers.targets
    ).tolist()


@pytest.mark.usefixtures("workplace")
def test_fewer_images_are_among_more_and_the_number_is_said() -> None:
    notes: list[str] = []
    few = vitrail.stress("model.safetensors", "photos", tests="grid", images=3, resamples=100, note=notes.append)
    more = vitrail.stress("model.safetensors", "photos", tests="grid", images=6, resamples=100, **QUIET)
    assert set(few.images) < set(more.images)
    assert any("3 of 8 images were drawn" in sentence for sentence in notes)


@pytest.mark.usefixtures("workplace")
def test_models_in_memory_and_of_another_size_are_compared() -> None:
    small = perturbed(vit_config(image_size=(16, 16), num_classes=2))
    large = perturbed(vit_config(image_size=(24, 24), num_classes=2, pool="mean"))
    result = vitrail.stress([small, large], "photos", labels=["ant", "bee"], tests="occlusion", resamples=100, **QUIET)
    assert result.models == ("model 1", "model 2")
    assert any("model 2 takes images of 24x24" in sentence for sentence in result.notes)
    assert result.settings["grid"] == [4, 4]
    assert result.mean("model 2", "occlusion-random") is not None


class Foreign:
    """An engine of which nothing is known."""

    preprocessing = vitrail.Preprocessing(image_size=(16, 16))
    num_outputs, feature_width, digest, concurrent = 2, 1, "", False

    def __init__(self, own: vitrail.ViT) -> None:
        import torch

        from vitrail.runtime.engine import TorchEngine

        self.own = TorchEngine(own, self.preprocessing)
        self.device, self.dtype = torch.device("cpu"), torch.float32

    def logits(self, pixels):
        return self.own.logits(pixels)

    def features(self, pixels):
        return self.own.features(pixels)


@pytest.mark.usefixtures("workplace")
def test_an_engine_without_gradients_is_not_attacked_but_takes_the_rest() -> None:
    own = perturbed(vit_config(image_size=(16, 16), num_classes=2))
    result = vitrail.stress(
        [own, Foreign(own)], "photos", labels=["ant", "bee"], tests=["pgd", "fog"], steps=1, resamples=100, **QUIET
    )
    assert len(result.curve("model 1", "pgd")) == 4
    assert result.curve("model 2", "pgd") == ()
    assert result.mean("model 2", "pgd") is None
    assert result.curve("model 1", "fog") == result.curve("model 2", "fog")
    assert any("model 2 is left out of pgd" in sentence for sentence in result.notes)


@pytest.mark.usefixtures("unchecked", "workplace")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tests": "oclusion"}, r"there is no stress 'oclusion'.*Did you mean occlusion"),
        ({"severities": [7]}, "severity is 7, but must be a whole number of at most 5"),
        ({"images": 0}, "images is 0, but must be a whole number of at least 1"),
        ({"steps": 0}, "steps is 0"),
        ({"budget": 300}, "budget is 300"),
        ({"models": []}, "no model is given"),
        ({"data": "unlabelled"}, "has no image with a class to compare answers with"),
        ({"data": "strangers"}, r"classes that the model lacks: wasp.* Rename the data.s classes, or give"),
        ({"models": "headless.safetensors"}, "headless.safetensors has no head"),
        ({"models": "tiny.safetensors"}, "4x4 pixels, which are too small for the grid"),
        ({"models": "photos"}, "photos"),
        ({"out": "model.safetensors"}, "model.safetensors is a file, but"),
        ({"out": "photos"}, "photos is read by this command"),
    ],
)
def test_bad_input_is_one_sentence(workplace: Path, settings, sentence) -> None:
    image = (workplace / "photos" / "ant" / "0.png").read_bytes()
    for name in ("unlabelled/0.png", "unlabelled/1.png", "strangers/ant/0.png", "strangers/wasp/1.png"):
        file = workplace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(image)
    vitrail.save(perturbed(vit_config(num_classes=0)), "headless.safetensors")
    small = vit_config(image_size=(4, 4), patch_size=(2, 2), num_classes=2)
    vitrail.save(perturbed(small), "tiny.safetensors", labels=["ant", "bee"])
    given = {"models": "model.safetensors", "data": "photos", "tests": "grid"} | settings
    with pytest.raises(vitrail.VitrailError, match=sentence) as caught:
        vitrail.stress(given.pop("models"), given.pop("data"), **given, **QUIET)
    assert "\n" not in str(caught.value)


def test_an_image_that_cannot_be_read_does_not_stop_the_others(workplace: Path) -> None:
    (workplace / "photos" / "ant" / "2.png").write_bytes(b"no image")
    notes: list[str] = []
    result = vitrail.stress("model.safetensors", "photos", tests="grid", resamples=100, note=notes.append)
    assert len(result.images) == 7
    assert [Path(name).name for name, _ in result.failures] == ["2.png"]
    assert any("2.png" in sentence for sentence in notes)
    assert np.isnan(result.answers.confidence).sum() == result.answers.confidence.shape[1]


@pytest.mark.usefixtures("workplace")
def test_one_image_has_no_interval_and_no_star(resnet: Path) -> None:
    """Every resample of one image is that image: two models that differ on it would differ beyond chance."""
    result = vitrail.stress(["model.safetensors", resnet], "photos", tests="shuffle", images=1, resamples=100, **QUIET)
    figures = [
        figure for summary in result.summaries for figure in (*summary.means.values(), *summary.changes.values())
    ]
    assert len(figures) == 6  # of each model two means and a change
    assert all(np.isnan(figure.low) and np.isnan(figure.high) for figure in figures)
    assert not any("*" in cell for row in result.tables()[0].rows for cell in row)
    json.dumps(result.to_dict(), allow_nan=False)
