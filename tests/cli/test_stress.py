import json
from pathlib import Path

import pytest

from tests.verbs.conftest import workplace  # noqa: F401
from vitrail.cli.main import main

pytestmark = [pytest.mark.usefixtures("unchecked", "workplace")]


def test_models_come_first_and_data_last(capsys) -> None:
    words = "stress model.safetensors other.safetensors photos --tests grid fog --severities 3 --images 5"
    assert main([*words.split(), "--bootstrap", "100"]) == 0
    printed = capsys.readouterr()
    assert "Mean accuracy under stress, 5 images" in printed.out
    (heading,) = (line.split() for line in printed.out.splitlines() if line.startswith("stress "))
    assert len(heading) == 3
    assert heading[-1] == "other"
    assert "5 of 8 images were drawn at random; --images sets how many." in printed.err


def test_json_is_all_of_stdout_and_files_are_named_on_stderr(capsys) -> None:
    words = "stress model.safetensors photos --tests shuffle --images 3 --out stressed --json --bootstrap 100"
    assert main(words.split()) == 0
    printed = capsys.readouterr()
    content = json.loads(printed.out)
    assert content["page"] == str(Path("stressed") / "stress.html")
    assert content["models"][0]["tests"]["shuffle"]["levels"][0]["level"] == 2
    assert "the page is stressed/stress.html" in printed.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("stress model.safetensors", "stress needs a model and data"),
        ("stress", "stress needs a model and data"),
        ("stress missing.safetensors photos", "missing.safetensors"),
        ("stress model.safetensors nowhere", "nowhere"),
        ("stress model.safetensors photos/ant", "photos/ant has no image with a class"),
        ("stress model.safetensors photos --tests frog", "there is no stress 'frog'"),
        ("stress model.safetensors photos --severities 9", "is 9, but must be a whole number of at most 5"),
        ("stress model.safetensors photos --severities high", "--severities is given 'high'"),
        ("stress model.safetensors photos --images 0", "--images is 0"),
        ("stress model.safetensors photos --budget -1", "--budget is -1"),
    ],
)
def test_bad_input_ends_with_2_and_one_sentence(words, sentence, capsys) -> None:
    assert main(words.split()) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.out == ""
    assert "Traceback" not in printed.err
