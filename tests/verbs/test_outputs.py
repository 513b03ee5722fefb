"""Outputs of every verb: never an input, never a file of another kind unless it is forced, and again over their own."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import vitrail
from vitrail.base.errors import ConfigError, InputError

QUICK = {"threads": 1, "device": "cpu"}
Write = Callable[..., object]


def evaluate_csv(out: str, **keywords) -> object:
    return vitrail.evaluate("model.safetensors", "photos", csv=out, resamples=100, **QUICK, **keywords)


def evaluate_html(out: str, **keywords) -> object:
    return vitrail.evaluate("model.safetensors", "photos", html=out, resamples=100, **QUICK, **keywords)


def fewshot(out: str, **keywords) -> object:
    return vitrail.fewshot("model.safetensors", "photos", shots=[1], cache=False, plot=out, **QUICK, **keywords)


def predict(out: str, **keywords) -> object:
    return vitrail.predict("model.safetensors", "photos", out=out, **QUICK, **keywords)


def survey_clean(out: str, **keywords) -> object:
    return vitrail.survey("photos", clean=out, **keywords)


def survey_sheet(out: str, **keywords) -> object:
    return vitrail.survey("photos", sheet=out, **keywords)


def convert(to: str) -> Write:
    def write(out: str, **keywords) -> object:
        return vitrail.convert("model.safetensors", out, to=to, lossy=True, **keywords)

    return write


OUTPUTS: dict[str, Write] = {
    "x.csv": evaluate_csv,
    "x.html": evaluate_html,
    "x.svg": fewshot,
    "x.png": fewshot,
    "predicted.csv": predict,
    "predicted.jsonl": predict,
    "predicted.parquet": predict,
    "list.csv": survey_clean,
    "sheet.html": survey_sheet,
    "converted.safetensors": convert("vitrail"),
    "google.npz": convert("google"),
    "timm.safetensors": convert("timm"),
    "torchvision.safetensors": convert("torchvision"),
}
pytestmark = pytest.mark.usefixtures("workplace")


@pytest.mark.parametrize("name", OUTPUTS)
def test_only_force_replaces_a_file_of_another_kind_and_a_file_of_the_same_kind_needs_none(name: str) -> None:
    write, path = OUTPUTS[name], Path(name)
    path.write_bytes(b"path,label,probability,remark\nmine,cat,1,precious\n")
    with pytest.raises(InputError, match=r"exists and is not .*, so it is not replaced; give another name, or `force"):
        write(name)
    assert path.read_bytes().endswith(b"precious\n")
    write(name, force=True)
    written = path.read_bytes()
    assert b"precious" not in written
    write(name)
    assert path.stat().st_size == pytest.approx(len(written), rel=0.2)


def test_an_empty_file_is_nothing_to_lose() -> None:
    Path("x.csv").touch()
    assert predict("x.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.csv", "path,label\nphotos/ant/0.png,ant\n"),
        ("list.csv", "path,label,split,comment\nphotos/ant/0.png,ant,train,mine\n"),
        ("list.jsonl", '{"path": "photos/ant/0.png", "label": "ant"}\n'),
    ],
)
def test_a_list_of_images_is_not_a_table_of_predictions(name: str, text: str) -> None:
    Path(name).write_text(text)
    with pytest.raises(InputError, match="is not a table of predictions"):
        predict(name)


def test_an_output_is_never_an_input_even_with_force() -> None:
    listed = "path,label,split\n" + "".join(f"photos/{('ant', 'bee')[n % 2]}/{n}.png,{n % 2},\n" for n in range(8))
    Path("list.csv").write_text(listed)
    Path("names.csv").write_text("ant\nbee\n")
    Path("link.csv").symlink_to("list.csv")
    for attempt in (
        lambda: vitrail.survey("list.csv", clean="list.csv", force=True),
        lambda: vitrail.survey("list.csv", clean="link.csv", force=True),
        lambda: vitrail.survey("list.csv").clean("list.csv", force=True),
        lambda: vitrail.evaluate("model.safetensors", "list.csv", csv="list.csv", force=True, **QUICK),
        lambda: vitrail.evaluate("model.safetensors", "photos", labels="names.csv", csv="names.csv", force=True),
        lambda: vitrail.predict("model.safetensors", "@list.csv", out="list.csv", force=True, **QUICK),
        lambda: vitrail.predict("model.safetensors", "photos", labels="names.csv", out="names.csv", force=True),
        lambda: vitrail.convert("model.safetensors", "model.safetensors", force=True),
    ):
        with pytest.raises(InputError, match="is read by this command, so it cannot also be written"):
            attempt()
    assert Path("list.csv").read_text() == listed


def test_a_folder_of_a_model_is_never_written_into_itself() -> None:
    vitrail.convert("model.safetensors", "hf", to="huggingface")
    with pytest.raises(InputError, match="is read by this command"):
        vitrail.convert("hf", "hf/model.safetensors", to="timm", lossy=True, force=True)


@pytest.mark.parametrize("to", ["huggingface", "timm"])
def test_a_model_is_not_converted_into_the_folder_of_a_run(to: str) -> None:
    vitrail.train("photos", steps=1, batch=2, model="Ti/16", image_size=16, out="run", quiet=True, **QUICK)
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=f"run exists and is not a converted model of the format {to}"):
        vitrail.convert("model.safetensors", "run", to=to, lossy=True)
    with pytest.raises(InputError, match="is not a converted model of the format vitrail"):
        vitrail.convert("other.safetensors", "run/model.safetensors")
    assert {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("to", ["huggingface", "timm"])
def test_a_folder_that_was_converted_into_may_be_written_again_but_not_with_something_else_in_it(to: str) -> None:
    shutil.rmtree("folder", ignore_errors=True)
    Path("folder").mkdir()
    for _ in range(2):
        vitrail.convert("model.safetensors", "folder", to=to, lossy=True)
    Path("folder/README.md").write_text("mine")
    with pytest.raises(InputError, match="folder exists and is not a converted model"):
        vitrail.convert("model.safetensors", "folder", to=to, lossy=True)
    vitrail.convert("model.safetensors", "folder", to=to, lossy=True, force=True)
    assert Path("folder/README.md").read_text() == "mine"


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_empty_name_is_not_the_current_folder(name: str) -> None:
    with pytest.raises(ConfigError, match="is empty, but must be a path"):
        OUTPUTS[name]("")


@pytest.mark.parametrize("images", ["photos", ["photos"]])
def test_explanations_never_go_into_the_folder_of_their_images(images: object) -> None:
    before = sorted(Path("photos").rglob("*"))
    with pytest.raises(InputError, match="photos is read by this command, so it cannot also be written"):
        vitrail.explain("model.safetensors", images, out="photos", force=True)
    assert sorted(Path("photos").rglob("*")) == before
