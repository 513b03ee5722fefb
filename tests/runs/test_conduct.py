"""A run that is finished is not run again."""

from pathlib import Path

from tests.train.making import made_config, made_run
from vitrail.runs.conduct import Watching, conduct, is_finished
from vitrail.train.signals import StopSignal


class _Heard:
    def __init__(self) -> None:
        self.starts: list[int] = []

    def start(self, step: int) -> None:
        self.starts.append(step)

    def note(self, sentence: str) -> None: ...

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


def test_a_run_goes_to_its_end_once(tmp_path: Path) -> None:
    run, heard = made_run(tmp_path / "run", made_config(steps=3)), _Heard()
    assert isinstance(heard, Watching)
    result = conduct(run, heard, StopSignal())
    assert is_finished(run)
    again = conduct(run, heard, StopSignal())
    assert (again["digest"], again["steps"]) == (result["digest"], 3)
    assert heard.starts == [0]
