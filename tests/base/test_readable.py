import pytest

from vitrail.base.readable import counted, in_bytes, value_text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (86_567_656, "86.57 M"), (17.56e9, "17.56 G"), (2e13, "20.00 T")]
)
def test_counts_have_the_letter_of_their_size(number, text) -> None:
    assert counted(number) == text


def test_a_unit_follows_the_letter() -> None:
    assert counted(4.41e9, "MACs") == "4.41 GMACs"
    assert counted(12, "MACs") == "12 MACs"


@pytest.mark.parametrize(("number", "text"), [(1000, "1000 B"), (1536, "1.50 KiB"), (2**34, "16.00 GiB")])
def test_bytes_have_binary_units(number, text) -> None:
    assert in_bytes(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        ([16, 16], "[16, 16]"),
        (None, "null"),
        (["a", "b"], "2: a, b"),
        ([], "none"),
        (list("abcdefg"), "7: a, b, c, d, e, ..."),
        ("tanh", "tanh"),
    ],
)
def test_settings_are_short(value, text) -> None:
    assert value_text(value) == text
