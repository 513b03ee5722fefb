"""The script in docs/runtime.md prints the labels that `vitrail predict` prints."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import vitrail
from tests.compiled.test_export import CROP, saved
from tests.data.pictures import photo

pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore")]


def test_the_plain_script_prints_the_same_labels(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "runtime.md").read_text()
    (script,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert len(script.splitlines()) <= 15
    (tmp_path / "script.py").write_text(script)
    vitrail.export(saved(tmp_path, **CROP), tmp_path / "model.onnx")
    photo(3).save(tmp_path / "photo.jpg", quality=95)
    command = [sys.executable, "script.py", "model.onnx", "photo.jpg"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    answer = vitrail.predict(tmp_path / "model.safetensors", tmp_path / "photo.jpg", top=5)
    printed = [line.removeprefix("photo.jpg: ").rpartition(" ") for line in done.stdout.splitlines()]
    assert [label for label, _, _ in printed] == [label for label, _ in answer.top]
    for (_, _, share), (_, probability) in zip(printed, answer.top, strict=True):
        assert float(share.rstrip("%")) / 100 == pytest.approx(probability, abs=0.005)
