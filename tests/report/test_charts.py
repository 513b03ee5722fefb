import numpy as np
import pytest

from tests.report.pages import read
from vitrail.report.charts import ROLES, Chart, Line

LINES = [
    Line(name=f"model <{place}>", x=np.arange(4.0), y=np.arange(4.0) / 9, low=np.zeros(4), high=np.ones(4), role=role)
    for place, role in enumerate(ROLES)
]
CHART = Chart(title="Accuracy & more", lines=LINES, x_label="share", y_label="accuracy")


def test_a_chart_on_a_page_has_a_key_and_the_pages_colours() -> None:
    page = CHART.html("one")
    assert page == CHART.html("one")
    words = "".join(read(page).itertext())
    assert "Accuracy & more" in words
    assert "model <3>" in words
    assert all(f"var(--{role})" in page for role in ROLES)
    assert "#030303" not in page


def test_dots_and_dashes_differ_from_lines_in_the_key() -> None:
    kinds = ({"dots": "only"}, {"dashed": True}, {"dots": "both"})
    lines = [Line(name=str(kind), x=np.arange(4.0), y=np.arange(4.0), role="muted", **kind) for kind in kinds]
    page = read(Chart(title="", lines=lines, x_label="", y_label="").html("one"))
    dot, dashes, line = (mark.get("style") for mark in page.iter("i"))
    assert "border-radius:50%" in dot
    assert "repeating-linear-gradient" in dashes
    assert line == "background:var(--muted)"


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_chart_is_a_picture_by_itself(kind, start) -> None:
    picture = CHART.picture(kind)
    assert picture.startswith(start)
    assert kind == "png" or picture == CHART.picture(kind)


def test_words_on_the_axes_may_be_anything() -> None:
    words = ["\x1b]0;owned\x07", "$\\frac{$ $", "<script>"]
    line = Line(name="\0", x=np.arange(3.0), y=np.arange(3.0) / 9)
    chart = Chart(
        title="\x1b",
        lines=[line],
        x_label="\x01",
        y_label="$\\x$",
        x_ticks=(0.0, 1.0, 2.0),
        x_axis=lambda value: words[round(value) % 3],
        y_axis=lambda value: f"{value:.1f}",
        y_range=(0.0, 1.0),
        slanted=True,
    )
    for page in (str(chart.html("c")), chart.picture("svg").decode()):
        assert not set("\x00\x01\x07\x1b") & set(page)
        assert "$\\frac{$ $" in page
        assert "<script>" not in page
