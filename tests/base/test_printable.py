import pytest

from vitrail.base.printable import printable


@pytest.mark.parametrize("text", ["photos/cat.jpg", "C:\\new", "été 日本語 עברית", "🧑\u200d🎨", ""])
def test_text_of_any_script_is_shown_as_it_is(text) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31mred\x9b0m", r"\x1b[31mred\x9b0m"),
        ("gpj\u202e.exe", r"gpj\u202e.exe"),
        ("\udcff", r"\udcff"),
    ],
)
def test_what_a_screen_would_obey_is_written_out(text, shown) -> None:
    assert printable(text) == shown
    assert printable(text).encode().isascii()
