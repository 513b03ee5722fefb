"""The folder of a run: what a kill leaves is no obstacle, and what belongs to others stays."""

from pathlib import Path

import pytest

from tests.training.making import made_config
from vitrail.base.errors import InputError
from vitrail.runs.folder import SERIES_LOCK, RunFolder


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", [".config.json.k3x.part", ".finetune.json.k3x.part", ".run.lock", ".series.lock"])
def test_what_a_kill_before_the_first_file_leaves_is_no_obstacle(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{")
    folder = RunFolder(path=tmp_path)
    with folder.claim():
        folder.enter(made_config())
        assert not list(tmp_path.glob(".*.part"))
    assert folder.read_config() == made_config()
    assert {path for path in _names(tmp_path) if not path.endswith(".lock")} == {"config.json"}


def test_what_a_kill_leaves_in_a_run_is_removed_when_it_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(path=tmp_path / "new" / "run")
    with folder.claim():
        folder.enter(made_config())
    (folder.path / ".model.safetensors.k3x.part").write_bytes(b"half")
    with folder.claim():
        folder.enter(made_config())
    assert _names(folder.path) == {"config.json"}


@pytest.mark.parametrize("name", ["letter.txt", "letter.part", ".hidden", "finetune.json.txt", "sweep"])
def test_a_folder_with_something_else_is_refused_and_left_as_it_is(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("dear")
    with (
        pytest.raises(InputError, match="exists and is not a run; give another `out`"),
        RunFolder(path=tmp_path).claim(),
    ):
        pass
    with pytest.raises(InputError, match="exists and is not a run"), RunFolder(path=tmp_path / name).claim():
        pass
    assert _names(tmp_path) == {name}
    assert (tmp_path / name).read_text() == "dear"


def test_the_folder_of_one_process_is_refused_to_another(tmp_path: Path) -> None:
    folder = RunFolder(path=tmp_path)
    with folder.claim():
        with pytest.raises(InputError, match=f"another process is working on {tmp_path}; wait"), folder.claim():
            pass
        with folder.claim(SERIES_LOCK):  # fine-tuning holds its folder while one of its runs holds it too
            pass
    assert _names(tmp_path) == set()
