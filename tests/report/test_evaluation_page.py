from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from tests.report.stories import CLOTHES, confusion_of, evaluation_of, mistakes_of
from vitrail.report.evaluation_page import EvaluationPage, Figure, render_evaluation, write_evaluation
from vitrail.report.reliability import Bin
from vitrail.report.story import DataStory


def _page(**changes: object) -> EvaluationPage:
    values: dict[str, object] = {
        "title": "model.safetensors on the test split of <clothes>",
        "figures": [Figure(label="accuracy", value="91.20%", note="95% interval 89.40% to 92.90%")],
        "evaluation": evaluation_of(CLOTHES, confusion_of(10, 100)),
        "bins": [
            Bin(low=at / 15, high=(at + 1) / 15, images=at * at, confidence=(at + 0.5) / 15, accuracy=at / 15)
            for at in range(15)
        ],
        "calibration": "Mean confidence 95.0% against an accuracy of 91.2%.",
        "mistakes": mistakes_of(CLOTHES, 5),
        "data": DataStory(where="clothes", splits={"test": dict.fromkeys(CLOTHES, 100)}, image_size=(28, 28)),
        "model": {"file": "model.safetensors", "SHA-256": "ab" * 32},
        "notes": ["scored over 10 of 1,000 classes"],
    }
    return EvaluationPage(**(values | changes))  # type: ignore[arg-type]


class _Reader(HTMLParser):
    """Collects headings and addresses, and sees that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in ("br", "img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def _read(page: str) -> _Reader:
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_the_page_shows_everything_and_fetches_nothing() -> None:
    page = render_evaluation(_page())
    reader = _read(page)
    assert reader.headings == ["Confusions", "Classes", "Calibration", "Most confident mistakes", "Data", "Model"]
    assert all(address.startswith("data:image/png") for address in reader.addresses if not address.startswith("#"))
    for words in ("91.20%", "89.40% to 92.90%", "&lt;clothes&gt;", "ab" * 32, "scored over 10 of 1,000", "Ankle boot"):
        assert words in page
    assert page.count("<svg") == 2


def test_the_same_page_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_evaluation(_page(), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_too_many_classes_leave_the_matrix_out_and_nothing_else() -> None:
    many = tuple(f"class {number}" for number in range(2001))
    counts = np.diag(np.arange(2001))
    page = render_evaluation(_page(evaluation=evaluation_of(many, counts, confusion=None)))
    assert _read(page).headings == ["Confusions", "Classes", "Calibration", "Most confident mistakes", "Data", "Model"]
    assert "With 2,001 classes the matrix" in page
    assert "The worst 50 of 2,001 classes." in page


def test_images_without_classes_have_figures_data_and_model_only() -> None:
    page = _page(evaluation=None, bins=(), mistakes=(), data=DataStory(where="val", splits={}))
    assert _read(render_evaluation(page)).headings == ["Data", "Model"]


def test_all_answers_in_one_bin_make_a_chart() -> None:
    bins = [Bin(low=14 / 15, high=1.0, images=4, confidence=0.99, accuracy=1.0)]
    one = evaluation_of(("a", "b"), np.array([[2, 0], [0, 2]]))
    assert "<svg" in render_evaluation(_page(bins=bins, evaluation=one, mistakes=()))
