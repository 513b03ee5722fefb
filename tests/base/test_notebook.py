from html.parser import HTMLParser

from vitrail.base.notebook import bar, table


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:  # noqa: ARG002 - as the class has it
        self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.texts.append(data)


def test_a_table_is_closed_and_every_text_is_escaped() -> None:
    rows = [("<b>bold</b>", "1 & 2", bar(0.5)), ("<span >x</span>", "3", bar(0.0))]
    shown = table("a < b", ("name", "number", ""), rows, notes=["<i>note</i>"])
    read = Tags()
    read.feed(shown)
    assert read.open == []
    for text in ("a < b", "<b>bold</b>", "1 & 2", "<span >x</span>", "<i>note</i>"):
        assert text in read.texts


def test_a_bar_is_as_long_as_its_share() -> None:
    assert "width:6.00em" in bar(0.5)
    assert "width:0.00em" in bar(0.0)
