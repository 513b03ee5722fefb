"""What stands below the command line names settings: its sentences are read by users of Python too."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "vitrail"
FLAG = re.compile(r"(?<![\w-])(?<!var\()--[a-z][a-z-]*+(?!:)")
"""A flag; `--name:` and `var(--name)` are CSS."""
COMMANDS = {"recipes/finetuning.py", "recipes/pretraining.py", "verbs/recipes.py"}
"""Files that have commands to be typed, as values that a user asks for."""
STILL = {
    "base/files.py",
    "base/trackers.py",
    "evaluate/names.py",
    "evaluate/subset.py",
    "predict/classifier.py",
    "predict/parts.py",
    "predict/work.py",
    "recipes/names.py",
    "runs/data.py",
    "runs/evaluation.py",
    "runs/finetune.py",
    "runs/folder.py",
    "train/optimizers.py",
}
"""Files that still name flags."""
FILES = {
    path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py")) if "cli" not in path.parts[-2:-1]
}


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield every string of a program but its docstrings."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, described)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def flags(program: str) -> list[str]:
    return [flag for text in texts(ast.parse(program)) for flag in FLAG.findall(text)]


@pytest.mark.parametrize("name", sorted(FILES.keys() - COMMANDS - STILL))
def test_no_text_below_the_command_line_names_a_flag(name) -> None:
    assert flags(FILES[name].read_text()) == []


@pytest.mark.parametrize("name", sorted(STILL))
def test_a_file_that_names_no_flag_any_more_is_not_excused(name) -> None:
    assert name not in FILES or flags(FILES[name].read_text())


def test_flags_are_found_in_texts_and_not_in_docstrings_or_styles() -> None:
    program = '''
"""Docstring with --flag."""
def say(out):
    """Docstring with --flag."""
    raise ValueError(f"{out} exists; give another --out, or --skip-broken.")
style = ":root { --page: #fff; --wide-page:2 } a { color: var(--ink) }"
words = "two--three and -- dashes"
'''
    assert flags(program) == ["--out", "--skip-broken"]
