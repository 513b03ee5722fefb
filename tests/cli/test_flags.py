from dataclasses import dataclass

import pytest

from vitrail.cli.flags import as_flags


@dataclass(frozen=True, kw_only=True)
class Arguments:
    data: str
    all_classes: bool = False
    bootstrap: int = 1000
    out: str | None = None


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("`all_classes` keeps the others.", "--all-classes keeps the others."),
        ("give another `out`.", "give another --out."),
        ("allow it with `out=x y.csv`, or not.", "allow it with --out x y.csv, or not."),
        ("keep them with `all_classes=True`.", "keep them with --all-classes."),
        ("resamples is 3, but must be at least 100.", "--bootstrap is 3, but must be at least 100."),
        ("out is given twice.", "--out is given twice."),
        ("data is empty; `data` has no images.", "data is empty; `data` has no images."),
        ("photos is what the model learned from.", "photos is what the model learned from."),
        ("`vitrail verify` checks its weights.", "`vitrail verify` checks its weights."),
        ("the way out is `unknown`.", "the way out is `unknown`."),
    ],
)
def test_settings_become_flags_and_nothing_else_does(sentence: str, shown: str) -> None:
    assert as_flags(sentence, Arguments, {"resamples": "bootstrap"}) == shown
