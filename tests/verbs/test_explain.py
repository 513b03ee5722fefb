import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vitrail
from tests.data.pictures import encoded, photo
from tests.report.pages import read, words
from tests.tiny import hybrid_config, perturbed, resnet_config, vit_config
from vitrail.analysis import methods
from vitrail.analysis.methods import METHODS
from vitrail.runtime.engine import TorchEngine

ANTS = ["ant", "bee"]
QUIET = {"note": lambda _: None}
WANTED = {"method": "gradient-attention", "top": 2} | QUIET


def photos(folder: Path, count: int = 3) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.png").write_bytes(encoded(photo(number, 30, 20)))
    return folder


@pytest.mark.usefixtures("workplace")
def test_the_files_hold_what_the_result_says(tmp_path: Path) -> None:
    out = tmp_path / "explained"
    result = vitrail.explain("model.safetensors", str(photos(tmp_path / "some")), out=out, **WANTED)
    assert [Path(image.name).name for image in result] == ["0.png", "1.png", "2.png"]
    assert [heat.label for heat in result[0].maps] == [label for label, _ in result[0].top]
    figures = json.loads((out / "explanations.json").read_text())
    assert figures["images"][1]["image_size"] == [30, 20] if result[1].image_size == (30, 20) else [20, 30]
    heat = figures["images"][1]["maps"][0]
    np.testing.assert_allclose(np.load(out / heat["file"]), result[1].maps[0].values, rtol=1e-6)
    np.testing.assert_allclose(heat["map"], result[1].maps[0].cells, atol=1e-6)
    with Image.open(out / figures["images"][1]["picture"]) as picture:
        assert picture.size[0] > 3 * 150
    page = read((out / "explanations.html").read_text())
    assert "Can the maps be trusted?" in words(page)
    assert "from violet to yellow" in words(page)
    assert "orange" not in words(page)
    assert len(page.findall(".//img")) == 3 * 3
    again = vitrail.explain("model.safetensors", str(tmp_path / "some"), out=out, **WANTED)
    assert again.to_dict() == result.to_dict()


def test_only_the_class_that_is_named_is_explained_and_it_need_not_be_the_answer() -> None:
    model = perturbed(vit_config(image_size=(16, 16), num_classes=2), by=0.3)
    pixels = photo(0, 40, 40)
    for label in ANTS:
        (image,) = vitrail.explain(model, pixels, labels=ANTS, label=label, points=0, **QUIET)
        (heat,) = image.maps
        assert heat.label == label
        assert heat.trust is None
        assert heat.probability == pytest.approx(dict(image.top)[label])


def test_auto_covers_parts_of_the_image_where_the_model_is_small() -> None:
    result = vitrail.explain(perturbed(vit_config()), photo(0, 50, 40), top=1, points=0, **QUIET)
    assert result.methods == ("occlusion",)
    assert result.notes[-1] == "the model is small, so each of 12 parts of the image is covered in turn."


def test_auto_chooses_by_the_kind_of_a_large_model_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "COVERING", 0)
    notes: list[str] = []
    cases = {
        "gradient-attention": (vit_config(), "the model has attention, so maps are attention weighted by gradients."),
        "grad-cam": (resnet_config(image_size=(32, 64)), "so maps are Grad-CAM's on its last feature map."),
        "occlusion": (resnet_config(image_size=(16, 64)), "has only 2x8 cells, so parts of the image are covered"),
    }
    for method, (config, reason) in cases.items():
        result = vitrail.explain(perturbed(config), photo(0, 50, 40), top=1, points=0, note=notes.append)
        assert result.methods == (method,)
        assert any(reason in sentence for sentence in result.notes)
        assert set(result.notes) <= set(notes)


class Foreign:
    """An engine of another kind, of which nothing is known: the brighter the middle, the more of class 1."""

    def __init__(self) -> None:
        self.own = TorchEngine(perturbed(vit_config(image_size=(24, 24), num_classes=2, patch_size=(4, 4))), PIXELS)
        self.preprocessing, self.num_outputs, self.feature_width = PIXELS, 2, 1
        self.device, self.dtype, self.digest, self.concurrent = torch.device("cpu"), torch.float32, "", False

    def logits(self, pixels: torch.Tensor) -> torch.Tensor:
        middle = pixels[:, :, 9:15, 9:15].float().mean(dim=(1, 2, 3)) / 50
        return torch.stack([torch.zeros_like(middle), middle], dim=1)

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.logits(pixels)


PIXELS = vitrail.Preprocessing(image_size=(24, 24))


def test_any_engine_is_explained_by_occlusion() -> None:
    white = np.full((48, 48, 3), 255, np.uint8)
    (image,) = vitrail.explain(Foreign(), white, labels=ANTS, **QUIET)
    heat = image.maps[0]
    assert heat.method == "occlusion"
    assert heat.cells.shape == (7, 7)
    assert np.unravel_index(heat.cells.argmax(), (7, 7)) == (3, 3)
    areas = heat.trust.areas
    assert areas["deletion"] < areas["random_deletion"]
    assert areas["insertion"] > areas["random_insertion"]


@pytest.mark.parametrize("config", [vit_config(), vit_config(pool="mean"), hybrid_config(), resnet_config()])
def test_a_comparison_has_every_method_of_the_model(config) -> None:
    result = vitrail.explain(perturbed(config, by=0.3), [photo(1, 50, 40), photo(2, 33, 44)], compare=True, **QUIET)
    attends, convolves = config.attention_shape[0] > 0, config.feature_grid is not None
    wanted = [
        method
        for method in METHODS
        if (attends or ("attention" not in method and method != "rollout")) and (convolves or method != "grad-cam")
    ]
    assert list(result.methods) == wanted
    for method in wanted:
        areas = result.areas(method)
        assert areas["gain"].low <= areas["gain"].value <= areas["gain"].high
        assert areas["deletion"].value == pytest.approx(
            np.mean([trust.areas["deletion"] for trust in result.trusts(method)])
        )
    images, trust = result.tables()
    assert [row[2] for row in images.rows] == [*wanted, "random maps"] * 2
    assert sorted(row[0] for row in trust.rows[:-1]) == sorted(wanted)
    assert [float(row[3]) for row in trust.rows[:-1]] == sorted(
        (float(row[3]) for row in trust.rows[:-1]), reverse=True
    )
    for column, name in ((1, "random_deletion"), (2, "random_insertion")):
        assert float(trust.rows[-1][column]) == pytest.approx(result.areas(wanted[0])[name].value, abs=6e-4)
    assert result._repr_html_()


def test_a_table_fits_a_terminal_and_names_folders_only_where_it_must(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        photos(tmp_path / folder, 2)
    model = perturbed(hybrid_config(num_classes=2))
    one = vitrail.explain(model, str(tmp_path / "one"), labels=ANTS, compare=True, points=2, **QUIET)
    lines = [line for table in one.tables() for line in replace(table, notes=()).text().splitlines()]
    assert max(map(len, lines)) <= 80
    assert [row[0] for row in one.tables()[0].rows if row[0]] == ["0.png", "1.png"]
    both = vitrail.explain(model, [str(tmp_path / "one"), str(tmp_path / "two")], labels=ANTS, points=0, **QUIET)
    assert len({row[0] for row in both.tables()[0].rows if row[0]}) == 4


def test_one_image_has_no_interval() -> None:
    """Its bootstrap would be a single value, which looks certain and is not."""
    result = vitrail.explain(perturbed(vit_config()), photo(0, 20, 20), points=3, **QUIET)
    gain = result.areas("occlusion")["gain"]
    assert np.isfinite(gain.value)
    assert np.isnan(gain.low)
    assert result.tables()[1].rows[0][-1] == ""
    figures = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert figures["methods"]["occlusion"]["gain"]["low"] is None


def test_a_crop_is_undone() -> None:
    """Of a wide image the model sees the middle: the rest of the overlay is dark, and the map is not stretched."""
    model = perturbed(vit_config(image_size=(16, 16)), by=0.3)
    pixels = vitrail.Preprocessing(image_size=(16, 16), geometry="crop", antialias=True)
    model.info = replace(model.info, preprocessing=pixels)
    (image,) = vitrail.explain(model, np.full((240, 480, 3), 200, np.uint8), points=0, top=1, **QUIET)
    picture = image.overlay().astype(int).sum(axis=2)
    assert picture.shape == (240, 480)
    assert len(np.unique(picture[:, :119])) == len(np.unique(picture[:, 361:])) == 1
    assert picture[:, 121:359].min() > picture[0, 0]
    assert image.to_dict()["seen"] == [0.0, 0.25, 1.0, 0.5]


def test_an_image_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    folder, notes = photos(tmp_path / "some"), []
    (folder / "1.png").write_bytes(b"no image")
    result = vitrail.explain(perturbed(vit_config()), str(folder), points=0, note=notes.append)
    assert [Path(image.name).name for image in result] == ["0.png", "2.png"]
    assert [Path(name).name for name, _ in result.failures] == ["1.png"]
    assert any("1.png" in sentence for sentence in notes)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": "grad-cam"}, "grad-cam is not for a Vision Transformer, which has no feature map of convolutions"),
        ({"method": "rolout"}, r"method is 'rolout'.*Did you mean rollout"),
        ({"label": "hippo"}, r"the model has no class 'hippo', only ant, bee"),
        ({"label": "be"}, "Did you mean bee"),
        ({"method": "attention", "layer": 2}, "layer is 2, but the model has 2: 0 to 1"),
        ({"method": "attention", "head": -5}, "head is -5, but the model has 4: 0 to 3"),
        ({"method": "rollout", "layer": 1}, "`layer` and `head` are of attention alone"),
        ({"method": "rollout", "head": 0}, "give the `method` attention beside them"),
        ({"method": "integrated-gradients", "steps": 0}, "steps is 0, but must be"),
        ({"method": "rollout", "steps": 8}, "`steps` are of integrated gradients alone"),
        ({"top": 0}, "top is 0, but must be"),
        ({"points": -1}, "points is -1, but must be"),
        ({"compare": True, "method": "rollout"}, "`compare` uses every method, but `method` is 'rollout'"),
        ({"compare": True, "layer": 9}, "layer is 9, but the model has 2: 0 to 1"),
        ({"label": 1}, "label is 1, but must be the name of a class, such as 'ant'"),
        ({"labels": ["one"]}, "2"),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(settings, sentence) -> None:
    model = perturbed(vit_config(num_classes=2))
    with pytest.raises(vitrail.VitrailError, match=sentence) as caught:
        vitrail.explain(model, photo(0, 20, 20), **{"labels": ANTS} | settings, **QUIET)
    assert "\n" not in str(caught.value)


def test_a_model_without_classes_and_a_resnet_asked_for_attention_are_refused() -> None:
    with pytest.raises(vitrail.InputError, match="has no classes, only a representation"):
        vitrail.explain(perturbed(vit_config(num_classes=0)), photo(0, 20, 20), **QUIET)
    with pytest.raises(vitrail.ConfigError, match="rollout is not for a ResNet, which has no attention; choose one of"):
        vitrail.explain(perturbed(resnet_config()), photo(0, 20, 20), method="rollout", **QUIET)
    with pytest.raises(vitrail.ConfigError, match="`layer` and `head` are of attention alone; leave them out"):
        vitrail.explain(perturbed(resnet_config()), photo(0, 20, 20), compare=True, layer=0, **QUIET)


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    folder = photos(tmp_path / "some")
    with pytest.raises(vitrail.InputError, match="exists and is not a folder of explanations"):
        vitrail.explain(perturbed(vit_config()), photo(0, 20, 20), out=folder, **QUIET)
    with pytest.raises(vitrail.InputError, match="is a file, but"):
        vitrail.explain(perturbed(vit_config()), photo(0, 20, 20), out=folder / "0.png", force=True, **QUIET)
    assert sorted(path.name for path in folder.iterdir()) == ["0.png", "1.png", "2.png"]
