"""Every command and every line of Python that the README and the guides print must run."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from vitrail.cli.main import main

ROOT = Path(__file__).parent.parent
STORIES = {"checkpoints.md", "tutorial.md"}  # whose examples need files: test_guide.py and test_tutorial.py run them
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name not in STORIES)]
COMMANDS = [command for page in PAGES for command in re.findall(r"^\$ vitrail (.+)$", page.read_text(), re.M)]
PROGRAMS = {page.name: "".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)) for page in PAGES}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_command_runs_and_prints_what_the_page_shows(command: str) -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(shlex.split(command)) == 0
    page = next(page for page in PAGES if f"$ vitrail {command}\n" in page.read_text())
    block = page.read_text().split(f"$ vitrail {command}\n")[1].split("```")[0]
    printed = [line.rstrip() for line in shown.getvalue().splitlines()]
    assert block.rstrip("\n").splitlines() == printed


@pytest.mark.parametrize("page", [name for name, program in PROGRAMS.items() if program])
def test_the_documented_programs_of_a_page_run_one_after_the_other(page: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(PROGRAMS[page], page, "exec"), {})  # noqa: S102


def test_there_is_something_documented() -> None:
    assert len(COMMANDS) >= 2
    assert PROGRAMS["README.md"]
