"""Below the command line, sentences name settings; on it, flags; and never the other way round."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest

import vitrail
from vitrail.cli.flags import Positional, Switch, flag
from vitrail.cli.main import VERBS
from vitrail.cli.names import OTHERWISE, flag_of, in_flags

SOURCE = Path(vitrail.__file__).parent
OTHERS = {"report/style.py", "report/markup.py", "verbs/recipes.py"}  # variables of CSS; commands to type


def _sentences() -> Iterator[tuple[str, str]]:
    """Yield every string below the command line that is not a docstring, with the name of its file."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith("cli/") or name in OTHERS:
            continue
        tree = ast.parse(path.read_text())
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings, of fields too
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                yield name, node.value


def test_no_sentence_below_the_command_line_names_a_flag() -> None:
    named = [(name, text) for name, text in _sentences() if re.search(r"(?<![\w-])--[a-z]", text)]
    assert named == []


def test_every_setting_in_backticks_is_a_flag_of_some_verb() -> None:
    flags = {"DATA", "--from"}
    for verb in VERBS:
        arguments = import_module(f"vitrail.cli.{verb}").Arguments
        flags |= {f"--{field.name.replace('_', '-')}" for field in fields(arguments)}
    names = {name for _, text in _sentences() for name in re.findall(r"`([a-z][a-z0-9_]*)`", text)}
    assert {"out", "image_size", "start", "skip_broken"} <= names
    assert {name: flag_of(name) for name in names if flag_of(name) not in flags} == {}


@pytest.mark.parametrize(
    ("sentence", "translated"),
    [
        ("give another `out`.", "give another --out."),
        ("`image_size` is 3", "--image-size is 3"),
        ("`data` and a model as `start`", "DATA and a model as --from"),
        ("`schedule.peak`, `execution.compiled`", "--learning-rate, --compile"),
        ("`model.pool` cannot change", "model.pool cannot change"),
        ("`vitrail data` tells why; run `pip install x`", "`vitrail data` tells why; run `pip install x`"),
    ],
)
def test_settings_become_flags(sentence: str, translated: str) -> None:
    assert in_flags(sentence) == translated


def test_names_of_their_own_are_few() -> None:
    assert set(OTHERWISE) == {"data", "start", "settings", "compiled", "resamples"}


@dataclass(frozen=True, kw_only=True)
class Arguments:
    data: Annotated[str | None, Positional, flag("[DATA]")] = None
    source: Annotated[str | None, flag("MODEL", name="from")] = None
    image_size: str = "224"
    epochs: float = 1.0
    to: str = "vitrail"
    lossy: Switch = False
    skip_broken: str = "0"
    out: str | None = None


@pytest.mark.parametrize(
    ("sentence", "flags"),
    [
        ("choose its length with `epochs`.", "choose its length with --epochs."),
        ("`epochs=7` is enough.", "--epochs 7 is enough."),
        ("epochs is 0, but must be above 0.", "--epochs is 0, but must be above 0."),
        ("epochs is inf.", "--epochs is inf."),
        ("image_size is 5x5, but 16 is needed.", "--image-size is 5x5, but 16 is needed."),
        ("give image_size.", "give --image-size."),
        ("choose another format (to='vitrail' holds all).", "choose another format (--to vitrail holds all)."),
        ("allow it with skip_broken='9%'.", "allow it with --skip-broken 9%."),
        ("allow it with skip_broken=9%.", "allow it with --skip-broken 9%."),
        ("write it with lossy=True, if you like.", "write it with --lossy, if you like."),
        ("give `source`, not `data`.", "give --from, not DATA."),
        ("`to_dict()` lists all.", "--json lists all."),
    ],
)
def test_settings_become_the_flags_of_a_verb(sentence, flags) -> None:
    assert in_flags(sentence, Arguments) == flags


@pytest.mark.parametrize(
    "sentence",
    [
        "two epochs is a short run, and epochs is 3 words away from to.",
        "num_heads is missing, and gelu='tanh': it computes with 'erf'.",
        "there is no file photos/image_size/1.png.",
        "there is no folder 'image_size'.",
        "model.image_size is 5.",
        "image_size.csv is not a list.",
        "out is not a run that can be resumed.",
        "data is 5.",
        "lossy=False writes nothing.",
        "`vitrail models` lists them.",
        "it is for timm.models.VisionTransformer(image_size=[32, 32], epochs=6, norm=partial(Norm, epochs=5)).",
    ],
)
def test_everything_else_stays(sentence) -> None:
    assert in_flags(sentence, Arguments) == sentence
