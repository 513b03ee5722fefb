"""The figures, the data, the cost and the settings of a page, read back from its tables."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from scipy.stats import binomtest

from tests.report.pages import headings, pairs, part, read, settings, tables, words
from tests.report.stories import CLOTHES, confusion_of, evaluation_of, story_of
from vitrail.report import facts
from vitrail.report.report import render
from vitrail.report.story import DataStory, RunStory


def _tiles(story: RunStory) -> dict[str, str]:
    page = read(render(story))
    return dict(zip(map(words, page.iter("dt")), map(words, page.iter("dd")), strict=True))


def test_the_accuracy_is_the_diagonal_with_wilsons_interval() -> None:
    story = story_of()
    confusion = confusion_of(10, 100)
    right, total = int(confusion.trace()), int(confusion.sum())
    low, high = binomtest(right, total).proportion_ci(method="wilson")
    found = _tiles(story)
    assert found["test accuracy"].startswith(f"{100 * right / total:.2f}%")
    assert f"{100 * low:.1f}% to {100 * high:.1f}%" in found["test accuracy"]
    assert f"{total:,} images" in found["test accuracy"]
    assert found["test top-5 accuracy"] == "99.10%"


def test_the_first_three_costs_stand_at_the_top() -> None:
    found = _tiles(story_of())
    assert (found["images per second"], found["parameters"], found["time"]) == ("1,830", "1.2 M", "2 min 41 s")
    assert "core-hours" not in found


def test_of_five_classes_the_top_5_are_not_told() -> None:
    story = story_of(CLOTHES[:5])
    assert "test accuracy" in _tiles(story)
    assert "test top-5 accuracy" not in _tiles(story)


def test_without_anything_to_tell_there_are_no_figures() -> None:
    assert _tiles(story_of(evaluation=None, metrics=[], cost={})) == {}


def test_the_images_of_every_class_and_split_are_counted() -> None:
    splits = {"train": {"ant": 1200, "bee": 30, "wasp": 0}, "val": {"ant": 4, "bee": 2}}
    page = read(facts.data(DataStory(where="insects", splits=splits, image_size=(32, 48), channels=1, skipped=7)).html)
    told, spread, counts = tables(page)
    assert dict(told) == {  # type: ignore[arg-type]
        "from": "insects",
        "classes": "3",
        "seen at": "48x32 pixels, 1 channel",
        "left out": "7 images that could not be read",
    }
    assert spread[1:] == [["train", "1,230", "2", "30", "1,200"], ["val", "6", "2", "2", "4"]]
    assert counts == [["class", "train", "val"], ["ant", "1,200", "4"], ["bee", "30", "2"], ["wasp", "0", "0"]]
    shares = [node.get("style") for node in page.iter("span") if node.get("class") == "bar"]
    assert shares == ["--share:1", "--share:1", "--share:0.025", "--share:0.5", "--share:0", "--share:0"]


@pytest.mark.parametrize(("classes", "listed"), [(20, 20), (21, 21), (1000, 1000), (1001, 1000)])
def test_of_very_many_classes_the_rarest_are_listed(classes: int, listed: int) -> None:
    counts = {f"class {number}": 5000 - number for number in range(classes)}
    page = read(facts.data(DataStory(where="many", splits={"train": counts})).html)
    found = tables(page)[-1][1:]
    assert len(found) == listed
    assert min(int(count.replace(",", "")) for _, count in found) == 5000 - classes + 1
    (shown,) = page.iter("details")
    assert (shown.get("open") is not None) == (classes <= 20)


def test_every_cost_is_told() -> None:
    story = story_of()
    found = pairs(read(facts.cost(story.cost).html))
    assert found.keys() == story.cost.keys()
    assert found["parameters"] == "1,204,234"
    assert found["core-hours"] == "0.0894"
    assert found["training FLOPs"] == "0.0453 exaFLOPs"
    assert "Cost" not in headings(read(render(story_of(cost={}))))


def _leaves(given: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def test_every_setting_is_told_with_its_value() -> None:
    given = dict(story_of().settings) | {"note": "<none>", "nothing": None, "long": "word " * 100}
    page = part(read(facts.settings(given).html), "Settings")
    found, wanted = settings(page), dict(_leaves(given))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        written = value if isinstance(value, str) else json.dumps(value)
        assert found[name].endswith(written.strip()), name
    assert words(next(page.iter("summary"))) == f"All {len(wanted)} settings"


def test_one_image_size_may_be_unknown() -> None:
    assert "seen at" not in pairs(read(facts.data(DataStory(where="x", splits={"train": {"a": 1}})).html))


def test_an_evaluation_without_images_has_no_accuracy() -> None:
    empty = evaluation_of(CLOTHES, confusion_of(10, 100) * 0)
    assert not [name for name in _tiles(story_of(evaluation=empty, metrics=[])) if "accuracy" in name]
