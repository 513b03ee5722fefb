"""Errors name settings; the command line writes them as its own flags."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import tyro

from vitrail.cli.flags import Switch, flag
from vitrail.cli.translate import translate


@dataclass(frozen=True, kw_only=True)
class Arguments:
    data: Annotated[str | None, tyro.conf.Positional, flag("[DATA]")] = None
    source: Annotated[str | None, tyro.conf.arg(name="from")] = None
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
def test_settings_become_flags(sentence, flags) -> None:
    assert translate(sentence, Arguments) == flags


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
    ],
)
def test_everything_else_stays(sentence) -> None:
    assert translate(sentence, Arguments) == sentence
