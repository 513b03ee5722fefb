import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import vitrail
from tests.data.pictures import encoded, photo
from tests.report.pages import read, words
from tests.tiny import LATER, hybrid_config, perturbed, resnet_config, vit_config
from vitrail.verbs.inspection import Inspection
from vitrail.verbs.inspection_panels import panels, round_numbers

QUIET = {"note": lambda _: None}
PANELS = {
    *("filters", "positions", "distance", "entropy", "rollout", "norms"),
    *("cka", "rank", "dead", "importance", "pooling"),
}


def photos(folder: Path, count: int = 8, *, classes: bool = True) -> Path:
    for number in range(count):
        file = folder / (("ant", "bee")[number % 2] if classes else "") / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(photo(number, 30, 20)))
    return folder


def sentences(result: Inspection) -> str:
    """What the page says about panels that show less."""
    return " ".join(sentence for panel in panels(result) for sentence in panel.sentences)


@pytest.mark.usefixtures("workplace")
def test_every_panel_is_a_picture_numbers_and_a_part_of_the_page(tmp_path: Path) -> None:
    out = tmp_path / "inside"
    result = vitrail.inspect("model.safetensors", data="photos", out=out, **QUIET)
    figures = json.loads((out / "inspection.json").read_text())
    assert set(figures["panels"]) == PANELS
    assert figures["images"] == result.images == 8
    for panel in PANELS:
        assert json.loads((out / f"{panel}.json").read_text()) == figures["panels"][panel]
    pictures = {panel: sorted(out.glob(f"{panel}*.png")) for panel in PANELS}
    assert all(pictures.values()), pictures
    for picture in (file for files in pictures.values() for file in files):
        with Image.open(picture) as image:
            assert min(image.size) > 100
    for drawing in ("distance.svg", "entropy.svg", "cka.svg", "rank.svg", "importance-0.svg", "importance-1.svg"):
        assert "<svg" in (out / drawing).read_text()
    page = read((out / "inspection.html").read_text())
    for heading in ("Filters", "Positions", "Attention distance", "Dead units", "Class token against mean pooling"):
        assert heading in words(page)
    again = vitrail.inspect("model.safetensors", data="photos", **QUIET)
    assert again.to_dict()["panels"] == result.to_dict()["panels"]


def test_distance_and_entropy_are_those_of_the_maps_themselves(tmp_path: Path) -> None:
    config = vit_config(image_size=(16, 24), num_classes=2, registers=2)
    model = perturbed(config, by=0.5)
    result = vitrail.inspect(model, data=str(photos(tmp_path / "some")), importance="none", **QUIET)
    attention = result.models[0].attention
    rows, columns = np.indices(config.grid)
    centres = 4 * np.stack([rows.ravel(), columns.ravel()], axis=1)
    far = np.linalg.norm(centres[:, None] - centres, axis=2)
    assert attention.uniform == pytest.approx(far.mean(), rel=1e-5)
    pixels = vitrail.data.open(str(tmp_path / "some"))
    batch = torch.cat([vitrail.Preprocessing(image_size=(16, 24))(pixels.image(index)) for index in range(8)])
    for block, weights in model.attention_maps(batch).items():
        weights = weights.detach().double().numpy()
        patches = weights[:, :, 3:, 3:] / weights[:, :, 3:, 3:].sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(attention.distance[block], (patches * far).sum(-1).mean((0, 2)), rtol=1e-4)
        entropy = -(weights * np.log(weights)).sum(-1).mean((0, 2))
        np.testing.assert_allclose(attention.entropy[block], entropy, rtol=1e-4)


KINDS = {
    "mean": vit_config(num_classes=2, pool="mean"),
    "attention": vit_config(num_classes=2, pool="attention"),
    "none": vit_config(num_classes=2, positions="none"),
    "every layer": vit_config(num_classes=2, position_placement="every-layer"),
    "2-D": vit_config(num_classes=2, positions="learned-2d"),
    "relative": vit_config(num_classes=2, positions="relative"),
    **{name: vit_config(**{"num_classes": 2} | LATER[name]) for name in ("distilled", "trimmed", "CLIP", "DINOv3")},
    "grey": vit_config(num_classes=2, channels=1),
    "hybrid": hybrid_config(num_classes=2),
    "ResNet": resnet_config(num_classes=2),
}


@pytest.fixture(scope="module")
def some(tmp_path_factory) -> str:
    return str(photos(tmp_path_factory.mktemp("kinds") / "some", 6))


def test_without_a_block_or_a_head_no_attention_is_looked_at(some) -> None:
    for choice in ({"heads": []}, {"layers": []}, {"heads": None}):
        (model,) = vitrail.inspect(perturbed(vit_config()), data=some, importance="none", **choice, **QUIET).models
        assert model.attention is None


def test_more_images_than_there_are_cost_no_memory(some) -> None:
    tracemalloc.start()
    try:
        vitrail.inspect(perturbed(KINDS["ResNet"]), data=some, importance_images=10**8, images=10**8, **QUIET)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**27


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_of_model_is_looked_into(kind, some) -> None:
    config = KINDS[kind]
    result = vitrail.inspect(
        perturbed(config, by=0.3), data=some, labels=["ant", "bee"] if config.num_classes else None,
        importance_images=2, examples=1, **QUIET,
    )  # fmt: skip
    (model,) = result.models
    attends = config.attention_shape[0] > 0
    assert (model.attention is not None) == attends == bool(model.examples)
    assert model.filters.directions.shape[1] == config.channels
    assert model.layers.names[0] in ("embedding", "root")
    assert np.isfinite(model.layers.lengths).all()
    np.testing.assert_allclose(np.diag(model.layers.alike), 1, atol=1e-6)
    assert bool(model.positions) == (attends and (config.positions != "none" or config.rotary is not None))
    assert all(grids.shape[1:] == config.grid for grids in model.positions.values())
    assert {figure.accuracy is None for figure in model.importance.figures} == {not config.num_classes}
    assert set(model.absences) == ({"positions"} if not model.positions else set()) | (
        {"distance", "entropy", "rollout"} if not attends else set()
    )
    json.dumps(result.to_dict(), allow_nan=False)


def test_without_data_there_are_the_panels_that_need_none_and_a_note(tmp_path: Path) -> None:
    notes: list[str] = []
    result = vitrail.inspect(perturbed(vit_config()), out=tmp_path / "inside", note=notes.append)
    assert sorted(result.to_dict()["panels"]) == ["filters", "positions"]
    assert "variance in 28 components of the filters" in repr(result)
    assert any("no data is given" in sentence for sentence in notes)
    page = words(read((tmp_path / "inside" / "inspection.html").read_text()))
    assert "this needs images, and no data was given" in page
    assert "Attention distance" in page


def test_two_models_show_what_training_changed(tmp_path: Path) -> None:
    before, after = perturbed(vit_config(num_classes=2)), perturbed(vit_config(num_classes=2))
    with torch.no_grad():
        for parameter in after.encoder.blocks[1].parameters():
            parameter.mul_(1.5)
    data = str(photos(tmp_path / "some"))
    result = vitrail.inspect([before, after], data=data, importance="none", out=tmp_path / "inside", **QUIET)
    (pair,) = result.comparisons
    assert (pair.first, pair.second) == ("the model 1", "the model 2")
    changes = {change.layer: round(change.change, 5) for change in pair.changes}
    assert changes == {"embedding": 0, "block 0": 0, "block 1": 0.5, "head": 0}
    np.testing.assert_allclose(pair.alike[:2, :2], result.models[0].layers.alike[:2, :2], atol=1e-9)
    assert pair.alike[2, 2] < 1
    assert (tmp_path / "inside" / "weights.svg").is_file()
    assert (tmp_path / "inside" / "positions-1.png").is_file()
    same = vitrail.inspect([before, before], **QUIET)
    assert {change.change for change in same.comparisons[0].changes} == {0.0}


def test_changes_stand_at_their_own_layers_whichever_of_them_other_models_have() -> None:
    models = [perturbed(vit_config(depth=depth), seed=seed) for seed, depth in enumerate((3, 3, 1))]
    (chart,) = next(panel for panel in panels(vitrail.inspect(models, **QUIET)) if panel.key == "weights").drawings
    layers = [[chart.x_axis(at) for at in line.x.tolist()] for line in chart.lines]
    assert layers == [["embedding", "block 0", "block 1", "block 2", "head"], ["embedding", "block 0", "head"]]


def test_importance_by_accuracy_is_measured_on_images_with_a_class(tmp_path: Path) -> None:
    folder = photos(tmp_path / "some", 6, classes=False)
    rows = [f"{number}.png,{label}" for number, label in enumerate(("", "ant", "", "bee", "ant", ""))]
    (folder / "list.csv").write_text("\n".join(["path,label", *rows]))
    model, labels = perturbed(vit_config(num_classes=2)), ["ant", "bee"]
    result = vitrail.inspect(model, data=folder / "list.csv", labels=labels, importance_images=1, **QUIET)
    assert result.models[0].importance.accuracy in (0.0, 1.0)
    json.dumps(result.to_dict(), allow_nan=False)


def test_models_of_other_sizes_and_kinds_stand_side_by_side(tmp_path: Path) -> None:
    models = [perturbed(vit_config(num_classes=2)), perturbed(hybrid_config()), perturbed(resnet_config())]
    data = str(photos(tmp_path / "some"))
    result = vitrail.inspect(models, data=data, importance="none", **QUIET)
    assert [pair.alike.shape for pair in result.comparisons] == [(3, 3), (3, 3)]
    assert result.comparisons[1].changes == ()
    said = sentences(result)
    assert "the model 3 has no weights of the same names and shapes as the model 1" in said
    assert "the model 3: a ResNet has no attention." in said


def test_data_without_classes_is_measured_by_the_change_of_outputs(tmp_path: Path) -> None:
    data = str(photos(tmp_path / "flat", classes=False))
    result = vitrail.inspect(perturbed(vit_config(num_classes=2)), data=data, **QUIET)
    assert result.models[0].importance.accuracy is None
    assert max(figure.change for figure in result.models[0].importance.figures) > 0
    assert "this is the change of its probabilities" in sentences(result)
    assert "this needs at least two classes" in sentences(result)


@pytest.mark.usefixtures("workplace")
def test_importance_by_accuracy_is_the_accuracy_of_a_model_whose_branch_is_zero() -> None:
    result = vitrail.inspect("model.safetensors", data="photos", **QUIET)
    found = result.models[0].importance
    assert found.accuracy == vitrail.evaluate("model.safetensors", "photos", **QUIET).accuracy
    model = vitrail.load("model.safetensors")
    with torch.no_grad():
        model.encoder.blocks[0].attention.out.weight.zero_()
        model.encoder.blocks[0].attention.out.bias.zero_()
    (figure,) = [figure for figure in found.figures if figure.branch.name == "block 0, attention"]
    assert figure.accuracy == vitrail.evaluate(model, "photos", **QUIET).accuracy


def test_images_that_cannot_be_read_do_not_stop_the_others(tmp_path: Path) -> None:
    folder, notes = photos(tmp_path / "some"), []
    (folder / "ant" / "2.png").write_bytes(encoded(photo(2, 30, 20))[:90])
    model = perturbed(vit_config(num_classes=2))
    result = vitrail.inspect(model, data=str(folder), importance="none", note=notes.append)
    assert result.images == 7
    assert [Path(name).name for name, _ in result.failures] == ["2.png"]
    assert any("2.png" in sentence for sentence in notes)
    for file in folder.glob("*/*.png"):
        file.write_bytes(encoded(photo(2, 30, 20))[:90])
    with pytest.raises(vitrail.InputError, match="none of the 8 images"):
        vitrail.inspect(model, data=str(folder), importance="none", **QUIET)


@pytest.mark.usefixtures("unchecked", "workplace")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"layers": [2]}, "there are no blocks 2 to trace: there are 2, 0 to 1"),
        ({"heads": [-5]}, "there are no heads -5 to trace: there are 4, 0 to 3"),
        ({"images": 0}, "images is 0, but must be"),
        ({"examples": -1}, "examples is -1, but must be"),
        ({"importance": "loss"}, "importance is 'loss', but must be one of auto, accuracy, change, none"),
        ({"importance": "accuracy"}, "needs images with classes, but no data is given"),
        ({"importance": "accuracy", "data": "photos/ant"}, "photos/ant has no image with a class"),
        ({"data": "nowhere"}, "nowhere"),
        ({"data": "photos", "labels": ["one"]}, "2"),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(settings, sentence) -> None:
    with pytest.raises(vitrail.VitrailError, match=sentence) as caught:
        vitrail.inspect("model.safetensors", **settings, **QUIET)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("workplace")
def test_what_cannot_be_looked_into_is_refused(tmp_path: Path) -> None:
    model = perturbed(vit_config(num_classes=0))
    with pytest.raises(vitrail.InputError, match="has no classes, so it has no accuracy"):
        vitrail.inspect(model, data="photos", importance="accuracy", **QUIET)
    with pytest.raises(vitrail.InputError, match="7 models are given, but a page has room for 6"):
        vitrail.inspect([model] * 7, **QUIET)
    resnet = perturbed(resnet_config(num_classes=2))
    with pytest.raises(vitrail.ConfigError, match="choose attention, but no model that is given has any"):
        vitrail.inspect(resnet, data="photos", layers=[0], **QUIET)
    next(resnet.parameters()).data.fill_(float("nan"))
    with pytest.raises(vitrail.InputError, match="the model has weights that are not finite"):
        vitrail.inspect(resnet, **QUIET)
    with pytest.raises(vitrail.InputError, match="no model is given"):
        vitrail.inspect([], **QUIET)
    with pytest.raises(vitrail.InputError, match="exists and is not a folder of an inspection"):
        vitrail.inspect(model, out=tmp_path / "photos", **QUIET)
    broken = perturbed(vit_config())
    with torch.no_grad():
        broken.encoder.blocks[0].mlp.out.weight.fill_(3e38)  # finite, and its sums are not
    with pytest.raises(vitrail.InputError, match="gives numbers that are not finite"):
        vitrail.inspect(broken, data="photos", **QUIET)


@pytest.mark.usefixtures("workplace")
def test_only_the_asked_blocks_and_heads_are_looked_at() -> None:
    result = vitrail.inspect("model.safetensors", data="photos", layers=[-1], heads=[2, 0], importance="none", **QUIET)
    whole = vitrail.inspect("model.safetensors", data="photos", importance="none", **QUIET)
    attention = result.models[0].attention
    assert (attention.blocks, attention.heads) == ((1,), (2, 0))
    np.testing.assert_allclose(attention.distance[0], whole.models[0].attention.distance[1, [2, 0]], rtol=1e-5)
    assert "Inside model.safetensors" in repr(result)
    assert result._repr_html_()


@pytest.mark.usefixtures("workplace")
def test_the_tables_fit_a_terminal() -> None:
    result = vitrail.inspect("model.safetensors", data="photos", images=4, importance_images=4, **QUIET)
    (table,) = result.tables()
    assert len(table.rows) == 12
    assert max(map(len, replace(table, notes=()).text().splitlines())) <= 80


@pytest.mark.parametrize(
    ("low", "high", "numbers"),
    [
        (8.2, 21, [10, 12, 14, 16, 18, 20]),
        (1.02, 1.7, [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]),
        (3, 300, [5, 10, 20, 50, 100, 200]),
        (0.5, 90_000, [1, 10, 100, 1000, 10_000]),
        (99, 101, [99, 99.5, 100, 100.5, 101]),
    ],
)
def test_round_numbers_stand_on_the_axis_of_lengths(low, high, numbers) -> None:
    np.testing.assert_allclose(round_numbers(float(low), float(high)), numbers)


@given(st.floats(1e-300, 1e30), st.floats(1e-9, 1e9))
def test_any_range_of_lengths_has_a_few_numbers_inside_of_it(low, share) -> None:
    numbers = round_numbers(low, low * (1 + share))
    assert 1 <= len(numbers) <= 7
    assert (np.diff(numbers) > 0).all()
    assert (numbers >= low * 0.999).all()
    assert (numbers <= low * (1 + share) * 1.001).all()
