import json

import pytest

from vitrail.cli.main import main
from vitrail.model.variants import NAMES

pytestmark = pytest.mark.usefixtures("unchecked")  # no tensors here, and the checks refuse 7 where 7.0 is meant


def listed(capsys, *words: str) -> dict:
    assert main(["models", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_model_is_listed_with_its_published_size(capsys) -> None:
    report = listed(capsys)
    rows = {row["name"]: row for row in report["models"]}
    assert tuple(rows) == NAMES
    assert report["misfits"] == []
    assert rows["B/16"]["parameters"] == 86_567_656
    assert rows["B/16"]["tokens"] == 197
    assert rows["B/16"]["macs"] / 1e9 == pytest.approx(17.56, abs=0.01)
    assert rows["R50+L/32"]["tokens"] == 50
    assert rows["R50x1"]["tokens"] is None


def test_the_table_is_for_people(capsys) -> None:
    assert main(["models", "B/16", "R50x1"]) == 0
    title, header, *rows = capsys.readouterr().out.strip().splitlines()
    assert title.strip() == "Models at 224x224 pixels with 1000 classes"
    assert header.split() == ["model", "parameters", "millions", "tokens", "GMACs"]
    assert [row.split() for row in rows] == [
        ["B/16", "86,567,656", "86.57", "197", "17.56"],
        ["R50x1", "25,549,352", "25.55", "-", "4.09"],
    ]


def test_models_that_do_not_fit_the_image_are_named(capsys) -> None:
    report = listed(capsys, "--image-size", "384")
    wanted = [name for name in NAMES if name.endswith("/14")]
    assert report["misfits"] == wanted
    assert len(report["models"]) + len(wanted) == len(NAMES)
    assert next(row for row in report["models"] if row["name"] == "B/16")["parameters"] == 86_859_496
    assert main(["models", "--image-size", "384"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Not listed, since their patches do not divide 384x384: {', '.join(wanted)}." in printed


def test_flags_reach_the_model(capsys) -> None:
    report = listed(capsys, "B/16x8", "--image-size", "32x48", "--num-classes", "0", "--channels", "1")
    assert report["image_size"] == [32, 48]
    [row] = report["models"]
    assert row["tokens"] == 2 * 6 + 1
    embedding = 16 * 8 * 768 + 768 + 768 + 13 * 768
    blocks = 12 * (12 * 768**2 + 13 * 768)
    assert row["parameters"] == embedding + blocks + 2 * 768


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["b16"], "there is no model 'b16'"),
        (["H/14", "--image-size", "384"], "patch size 14x14 does not divide the image size 384x384"),
        (["--image-size", "large"], "the image size is 'large', but must be pixels such as 224"),
        (["--image-size", "0"], "the image size is '0'"),
        (["--image-size", "224x224x3"], "the image size is '224x224x3'"),
        (["--num-classes", "-1"], "--num-classes is -1, but must be a whole number of at least 0"),
        (["--channels", "0"], "--channels is 0, but must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, message, capsys) -> None:
    assert main(["models", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.strip().splitlines()) == 1
    assert message in output.err
