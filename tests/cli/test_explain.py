import json

import pytest

from tests.verbs.conftest import workplace as workplace
from vitrail.cli.main import main


@pytest.mark.usefixtures("workplace")
def test_json_is_on_stdout_and_everything_else_on_stderr(capsys) -> None:
    assert main(["explain", "model.safetensors", "photos", "--class", "bee", "--json", "--points", "3"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert len(figures["images"]) == 8
    assert {heat["class"] for image in figures["images"] for heat in image["maps"]} == {"bee"}
    assert figures["methods"]["occlusion"]["gain"]["low"] <= 1
    assert "parts of the image is covered in turn" in printed.err


@pytest.mark.usefixtures("workplace")
def test_tables_and_files(capsys, tmp_path) -> None:
    assert main(["explain", "model.safetensors", "photos/ant/0.png", "--compare", "--out", "seen"]) == 0
    printed = capsys.readouterr()
    assert "Can the maps be trusted?" in printed.out
    assert "the page is seen/explanations.html" in printed.err
    assert (tmp_path / "seen" / "0000-0.png").is_file()


@pytest.mark.usefixtures("workplace")
def test_the_exit_code_is_1_only_if_no_image_could_be_read(capsys, tmp_path) -> None:
    (tmp_path / "bad.png").write_bytes(b"bad")
    assert main(["explain", "model.safetensors", "bad.png", "photos/ant/0.png", "--points", "0"]) == 0
    assert main(["explain", "model.safetensors", "bad.png", "--points", "0"]) == 1
    assert "bad.png" in capsys.readouterr().err


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--class", "cat"], "the model has no class 'cat'"),
        (["--method", "attention", "--layer", "9"], "--layer is 9, but the model has 2"),
        (["--method", "attention", "--head", "4"], "--head is 4, but the model has 4"),
        (["--compare", "--layer", "-3"], "--layer is -3, but the model has 2"),
        (["--method", "grad-cam"], "grad-cam is not for a Vision Transformer"),
        (["--method", "magic"], "--method is given 'magic'"),
        (["--compare", "--method", "rollout"], "uses every method"),
    ],
)
def test_wrong_usage_is_one_sentence_with_flags(capsys, words, sentence) -> None:
    assert main(["explain", "model.safetensors", "photos", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
