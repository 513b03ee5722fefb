"""What nobody can mean, from Python: one sentence, at once, whatever the verb."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from tests.verbs.making import data_file, model_file, small_model
from vitrail.base.errors import ConfigError, VitrailError

pytestmark = pytest.mark.usefixtures("unchecked")
QUICK = {"threads": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_file(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_file(tmp_path_factory.mktemp("data"))


PHOTO = np.zeros((8, 8, 3), np.uint8)
NUMBERS = [0, -1, 1.5, "2", math.nan, math.inf, 10**12, 10**300, True]


@pytest.mark.parametrize("value", NUMBERS, ids=str)
@pytest.mark.parametrize("name", ["top", "batch", "workers", "threads"])
def test_numbers_of_predict(name: str, value: object, model: Path) -> None:
    with pytest.raises(VitrailError, match=rf"`?{name}`? is .*, but must be a whole number"):
        vitrail.predict(model, PHOTO, **{name: value})


@pytest.mark.parametrize("value", NUMBERS, ids=str)
@pytest.mark.parametrize("name", ["resamples", "batch", "threads"])
def test_numbers_of_evaluate(name: str, value: object, model: Path, data: Path) -> None:
    with pytest.raises(VitrailError, match=rf"`?{name}`? is .*, but must be a whole number"):
        vitrail.evaluate(model, data, **{name: value})


@pytest.mark.parametrize("value", NUMBERS, ids=str)
@pytest.mark.parametrize("name", ["shots", "seeds", "neighbours", "batch", "threads"])
def test_numbers_of_fewshot(name: str, value: object, model: Path, data: Path) -> None:
    settings = {"shots": [1]} | {name: [value] if name == "shots" else value}
    with pytest.raises(VitrailError, match=rf"`?{name}`? is .*, but must be a whole number"):
        vitrail.fewshot(model, data, cache=False, **settings)


@pytest.mark.parametrize("value", [0, -1, "2", math.nan, math.inf, 10**12, 10**300], ids=str)
@pytest.mark.parametrize("name", ["steps", "epochs", "minutes", "channels"])
def test_numbers_of_train(name: str, value: object, data: Path, tmp_path: Path) -> None:
    with pytest.raises(VitrailError, match=rf"`?{name}`? is .*, but must be"):
        vitrail.train(data, out=tmp_path / "run", **QUICK | {name: value})


@pytest.mark.parametrize("name", ["num_classes", "channels", "image_size"])
@pytest.mark.parametrize("value", [-1, 1.5, 10**12, 10**300, math.nan])
def test_numbers_of_models(name: str, value: object) -> None:
    with pytest.raises(VitrailError):
        vitrail.list_models("B/16", **{name: value})


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "meta", "", "cpu:x", 7, None])
def test_devices_that_are_not_there(device: object, model: Path, data: Path) -> None:
    for attempt in (
        lambda: vitrail.predict(model, PHOTO, device=device),
        lambda: vitrail.evaluate(model, data, device=device),
        lambda: vitrail.load(model, device=device),
        lambda: vitrail.Classifier.load(model, device=device),
    ):
        with pytest.raises(VitrailError, match="device"):
            attempt()


@pytest.mark.parametrize(
    "image",
    [
        torch.zeros(3, 8, 8, dtype=torch.uint8, device="meta"),
        torch.zeros(3, 8, 8, dtype=torch.uint8).to_sparse(),
        torch.zeros(0, 8, 3, dtype=torch.uint8),
        torch.zeros(3, 8, 8, dtype=torch.complex64),
        np.zeros((8, 8, 3), object),
        np.zeros((), np.uint8),
    ],
    ids=str,
)
def test_tensors_that_are_not_images(image: object) -> None:
    with pytest.raises(VitrailError, match=r"image 0|tensor|array"):
        vitrail.predict(small_model(), image, labels=["a", "b", "c"])


def test_a_model_without_numbers(data: Path) -> None:
    model = small_model().to("meta")
    for attempt in (lambda: vitrail.predict(model, PHOTO), lambda: vitrail.evaluate(model, data)):
        with pytest.raises(VitrailError, match="meta"):
            attempt()


@pytest.mark.parametrize("path", ["", "x" * 5000, "a/" * 3000 + "b", "nowhere", "zero\0byte", "/nowhere/\udcff"])
def test_paths_that_lead_nowhere(path: str, model: Path, data: Path) -> None:
    for attempt in (
        lambda: vitrail.load(path),
        lambda: vitrail.show(path),
        lambda: vitrail.verify(path),
        lambda: vitrail.diff(path, model),
        lambda: vitrail.convert(path, "x.safetensors"),
        lambda: vitrail.predict(path, PHOTO),
        lambda: vitrail.evaluate(path, data),
        lambda: vitrail.evaluate(model, path),
        lambda: vitrail.fewshot(model, path, cache=False),
        lambda: vitrail.survey(path),
        lambda: vitrail.data.open(path),
        lambda: vitrail.predict(model, [path]),
        lambda: vitrail.predict(model, PHOTO, labels=path),
        lambda: vitrail.evaluate(model, data, class_map=path),
        lambda: vitrail.evaluate(model, data, real=path),
    ):
        with pytest.raises(VitrailError) as refusal:
            attempt()
        assert len(str(refusal.value)) < 3000


@pytest.mark.parametrize("name", ["data", "root", "config", "resume", "extend", "out"])
def test_an_empty_path_is_not_the_sample_nor_the_usual_folder(name: str, data: Path, tmp_path: Path) -> None:
    keywords: dict[str, object] = {"out": tmp_path / "run", "steps": 1} | {name: ""}
    where = keywords.pop("data", data)
    for verb in (vitrail.train, vitrail.pretrain):
        with pytest.raises(VitrailError, match=rf"`{name}` is empty, but must be a path"):
            verb(where, **QUICK | keywords)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("verb", "values", "settings", "sentence"),
    [
        ("vtab", ("MODEL", ""), {}, "`root` is empty, but must be a path"),
        ("pretrain", (["sample", ""],), {"steps": 1}, "`data` is empty, but must be a path"),
        ("explain", ("MODEL", PHOTO), {"method": "attention", "layer": 0.5}, r"layer is 0\.5, but must be"),
        ("explain", ("MODEL", PHOTO), {"method": "attention", "layer": "x"}, "layer is 'x', but must be"),
        ("explain", ("MODEL", PHOTO), {"method": "attention", "head": "x"}, "head is 'x', but must be"),
        ("explain", ("MODEL", PHOTO), {"seed": 1.5}, r"seed is 1\.5, but must be a whole number"),
        ("inspect", ("MODEL",), {"layers": 3}, "give 'all', a list of numbers, or None"),
        ("inspect", ("MODEL",), {"layers": ["x"]}, "there are no blocks x to trace"),
        ("stress", ("MODEL", "DATA"), {"tests": ["pgd"], "budget": "x"}, "budget is 'x', but must be"),
        ("pull", (None,), {}, "there is no published model None"),
        ("pull", (7,), {}, "there is no published model 7"),
    ],
)
def test_values_of_other_types_are_refused_by_name(
    verb: str, values: tuple[object, ...], settings: dict[str, object], sentence: str, model: Path, data: Path
) -> None:
    files = {"MODEL": model, "DATA": data}
    with pytest.raises(VitrailError, match=sentence):
        getattr(vitrail, verb)(
            *(files[one] if isinstance(one, str) and one in files else one for one in values), **settings
        )


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, 1e18])
def test_seconds_of_engines(seconds: float, model: Path) -> None:
    with pytest.raises(ConfigError, match=r"`seconds` is .*, but must be above 0 and at most 3,600"):
        vitrail.engines(model, seconds=seconds)
    with pytest.raises(ConfigError, match="`batch` is empty"):
        vitrail.engines(model, batch=[])
