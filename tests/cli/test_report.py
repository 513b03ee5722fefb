"""Tables: never wider than the terminal, or than 80 columns without one, and nothing of them lost."""

import io
import os
import sys

import pytest
import torch

import vitrail
from tests.tiny import vit_config
from vitrail.cli import streams
from vitrail.cli.main import main
from vitrail.cli.report import print_table

pytestmark = pytest.mark.usefixtures("unchecked")


class Terminal(io.StringIO):
    """A terminal that keeps what is shown."""

    def isatty(self) -> bool:
        return True


ROWS = [("a name of some words", "1,234,567", "a note of many words " * 8), ("p/" * 60, "2", "short")]


def printed(width: int | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    stream = io.StringIO() if width is None else Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "dumb")  # no colours
    if width is not None:
        monkeypatch.setattr(streams.shutil, "get_terminal_size", lambda *_, **__: os.terminal_size((width, 24)))
    print_table("A title of many words " * 6, ("", "value", "note"), ROWS, notes=["A sentence below. " * 9])
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [None, 40, 120])
def test_a_table_is_as_wide_as_there_is_room(width, monkeypatch) -> None:
    lines = printed(width, monkeypatch)
    room = width or 80
    assert room - 10 < max(map(len, lines)) <= room
    text = "".join("".join(lines).split())
    for part in ("1,234,567", "p/p/p/", "Atitleofmanywords" * 6, "Asentencebelow." * 9):
        assert part in text


def test_a_path_in_a_note_stays_whole(monkeypatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    path = "/folder" * 20
    print_table("x", ("", "value"), [], notes=[f"It is in {path} as ever."])
    assert path in stream.getvalue().splitlines()


@pytest.mark.parametrize(
    "words",
    [["models"], ["recipes"], ["recipes", "finetune-imagenet"], ["plan", "H/14", "--preset", "jft300m"]],
)
def test_tables_fit_80_columns_without_a_terminal(words, capsys) -> None:
    assert main(words) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.fixture
def described(tmp_path):
    torch.manual_seed(0)
    settings = {"schedule": {"peak": 0.1, "names": [f"name {number}" for number in range(900)]}, "empty": {}}
    provenance = {"config": settings | {f"setting_{at}": at for at in range(99)}, "told": "a long text " * 30}
    labels = [f"class {number}" for number in range(5)]
    return vitrail.save(
        vitrail.build(vit_config(num_classes=5)), tmp_path / "m.safetensors", labels=labels, provenance=provenance
    )


def test_settings_inside_settings_are_indented(described, capsys, monkeypatch) -> None:
    monkeypatch.chdir(described.parent)
    assert main(["show", described.name]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    start = lines.index("provenance")
    assert lines[start + 1] == "  config"
    start = lines.index("    schedule")
    assert [line.split(maxsplit=1) for line in lines[start + 1 : start + 3]] == [
        ["names", "900: name 0, name 1, name 2, name 3, name 4, ..."],
        ["peak", "0.1"],
    ]
    assert [line.split() for line in lines if line.startswith("    setting_7 ")] == [["setting_7", "7"]]
    assert " ".join(" ".join(lines).split()).count("a long text") == 30
    assert any(
        line.startswith("labels") and line.endswith("5: class 0, class 1, class 2, class 3, class 4") for line in lines
    )
    assert f"sha256: {vitrail.load(described).info.digest}" in lines


def test_diff_has_room_for_names_and_numbers(described, tmp_path, capsys) -> None:
    torch.manual_seed(1)
    other = vitrail.save(vitrail.build(vit_config(num_classes=5)), tmp_path / "n.safetensors", labels=list("abcde"))
    assert main(["diff", str(described), str(other)]) == 1
    lines = capsys.readouterr().out.splitlines()
    weights = [line.split() for line in lines if line.startswith("encoder.blocks.0.attention.qkv.weight ")]
    assert len(weights[0]) == 3
