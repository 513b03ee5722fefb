import pytest

from vitrail.base.errors import ConfigError, InputError, VitrailError, WriteError, did_you_mean

NAMES = ("B/16", "B/32", "L/16", "R50x1")


@pytest.mark.parametrize("kind", [ConfigError, InputError, WriteError])
def test_every_refusal_is_a_vitrail_error(kind) -> None:
    with pytest.raises(VitrailError, match="a sentence"):
        raise kind("a sentence")


@pytest.mark.parametrize(("word", "nearest"), [("B/61", "B/16"), ("b/16", "B/16"), ("r50X1", "R50x1"), ("L16", "L/16")])
def test_the_nearest_name_is_suggested_first_and_letter_case_does_not_matter(word, nearest) -> None:
    assert did_you_mean(word, NAMES).startswith(f" Did you mean {nearest}")


def test_nothing_is_suggested_when_nothing_is_near() -> None:
    assert did_you_mean("swin_base", NAMES) == ""


def test_no_more_names_are_suggested_than_allowed() -> None:
    assert did_you_mean("B/1", NAMES, most=1).count("/") == 1
