import json

import pytest

from tests.verbs.conftest import workplace as workplace
from vitrail.cli.main import main


@pytest.mark.usefixtures("workplace")
def test_json_is_on_stdout_and_everything_else_on_stderr(capsys) -> None:
    words = ["inspect", "model.safetensors", "other.safetensors", "--data", "photos", "--importance", "none", "--json"]
    assert main(words) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert figures["models"] == ["model.safetensors", "other.safetensors"]
    assert figures["panels"]["weights"]["other.safetensors"]["relative_change"]["block 0"] == 0
    assert figures["panels"]["weights"]["other.safetensors"]["relative_change"]["head"] > 0


@pytest.mark.usefixtures("workplace")
def test_tables_and_the_page(capsys, tmp_path) -> None:
    assert main(["inspect", "model.safetensors", "--out", "inside"]) == 0
    printed = capsys.readouterr()
    assert "Inside model.safetensors" in printed.out
    assert "no data is given, so panels that need images are left out; --data adds them." in printed.err
    assert "the page is inside/inspection.html" in printed.err
    assert (tmp_path / "inside" / "inspection.html").is_file()


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--layers", "9"], "there are no blocks 9"),
        (["--heads", "0", "7"], "there are no heads 7"),
        (["--importance", "accuracy"], "--importance accuracy needs images with classes"),
        (["--importance", "loss"], "--importance is given 'loss'"),
        (["--data", "photos/ant", "--importance", "accuracy"], "has no image with a class"),
        (["--images", "0"], "--images is 0"),
        (["--out", "model.safetensors"], "is a file, but"),
        (["--data", "nothing"], "nothing"),
    ],
)
def test_wrong_usage_is_one_sentence_with_flags(capsys, words, sentence) -> None:
    assert main(["inspect", "model.safetensors", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert main(["inspect"]) == 2
