"""Below the command line, errors and notes name settings; the command line writes them as flags."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/vitrail"
COMMANDS = {SOURCE / "verbs/recipes.py"}  # which shows what to type
FILES = sorted({path for path in SOURCE.glob("**/*.py") if "cli" not in path.relative_to(SOURCE).parts} - COMMANDS)
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def texts(path: Path) -> Iterator[str]:
    """Every string of a file but its docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_message_names_a_flag(path: Path) -> None:
    assert [text for text in texts(path) if _FLAG.search(text)] == []
