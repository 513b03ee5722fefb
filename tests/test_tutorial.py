"""The tutorial's commands and programs run, in order, and both ways give the same model."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from vitrail.cli.main import main

PAGE = (Path(__file__).parent.parent / "docs/tutorial.md").read_text()
COMMANDS = "".join(re.findall(r"^```shell\n(.*?)^```$", PAGE, re.M | re.S)).splitlines()
PROGRAM = "".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command of the page was run."""
    folder = tmp_path_factory.mktemp("shell")
    _write_photos(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in COMMANDS:
            name, *words = shlex.split(command)
            assert name == "vitrail"
            assert main(words) == 0, command
    return folder


def _write_photos(folder: Path) -> None:
    """Write dark ants and bright bees."""
    generator = np.random.default_rng(0)
    for label, least in (("ant", 0), ("bee", 120)):
        (folder / "photos" / label).mkdir(parents=True)
        for number in range(1, 31):
            pixels = generator.integers(least, least + 120, (40, 48, 3), np.uint8)
            Image.fromarray(pixels).save(folder / f"photos/{label}/{number:03}.png")


@pytest.mark.slow
def test_the_commands_run(shell: Path) -> None:
    for file in ("runs/scratch/report.html", "evaluation.html", "predictions.csv", "tuned.safetensors"):
        assert (shell / file).is_file()


@pytest.mark.slow
def test_the_programs_run_and_end_with_the_same_weights(
    shell: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_photos(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAM, "tutorial.md", "exec"), {})  # noqa: S102
    for run in ("runs/scratch", "runs/tuned"):
        one, other = (vitrail.load(folder / run / "model.safetensors").state_dict() for folder in (shell, tmp_path))
        assert all(one[name].equal(other[name]) for name in one)
