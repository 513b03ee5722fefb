from dataclasses import dataclass
from html.parser import HTMLParser

import pytest

from vitrail.base.table import Table, Tabular, bar

HOSTILE = "<script>alert(1)</script> & \"x\" 'y' \x1b[31m \u202e"
TABLE = Table(
    title="Models", columns=("model", "parameters", "note"), rows=(("B/16", "86", "a"), ("R50x1", "1,234", "bb"))
)


class Reader(HTMLParser):
    """What a browser would see: tags, and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.tags, self.text = [], [], ""

    def handle_starttag(self, tag: str, _: list) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_words_start_at_the_left_and_numbers_end_at_the_right() -> None:
    assert TABLE.text().splitlines() == [
        "Models",
        "model  parameters  note",
        "B/16           86  a",
        "R50x1       1,234  bb",
    ]


def test_a_table_may_be_sentences_alone() -> None:
    assert Table(notes=("One.", "Two.")).text() == "One.\nTwo."
    assert read(Table(notes=("One.", "Two.")).html()).tags.count("p") == 2
    assert Table().text() == ""


@pytest.mark.parametrize("part", ["title", "columns", "rows", "notes"])
def test_no_text_becomes_markup_or_moves_the_cursor(part) -> None:
    values = {"title": HOSTILE, "columns": (HOSTILE, "b"), "rows": ((HOSTILE, "1"),), "notes": (HOSTILE,)}
    table = Table(**{"columns": ("a", "b")} | {part: values[part]})
    page = read(table.html())
    assert "script" not in page.tags
    assert "<script>alert(1)</script> & \"x\" 'y'" in page.text
    for shown in (table.html(), table.text()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_bar_is_as_long_as_its_share_and_for_html_alone() -> None:
    table = Table(columns=("class", ""), rows=(("cat", bar(0.5)), ("dog", bar(0.0))))
    assert "width:6.00em" in table.html()
    assert "width:0.00em" in table.html()
    assert read(table.html()).tags.count("span") == 2
    assert table.text().split() == ["class", "cat", "dog"]


def test_a_result_shows_all_its_tables() -> None:
    @dataclass(frozen=True, repr=False)
    class Result(Tabular):
        def tables(self) -> list[Table]:
            return [TABLE, Table(), Table(notes=("One.",))]

    assert repr(Result()) == f"{TABLE.text()}\n\nOne."
    assert read(Result()._repr_html_()).tags.count("table") == 1
