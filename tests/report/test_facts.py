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
    tiles = _tiles(story)
    assert tiles["test accuracy"].startswith(f"{100 * right / total:.2f}%")
    assert f"{100 * low:.1f}% to {100 * high:.1f}%" in tiles["test accuracy"]
    assert f"{total:,} images" in tiles["test accuracy"]
    assert tiles["test top-5 accuracy"] == "99.10%"


def test_the_first_three_costs_stand_at_the_top() -> None:
    tiles = _tiles(story_of())
    assert (tiles["images per second"], tiles["parameters"], tiles["time"]) == ("1,830", "1.2 M", "2 min 41 s")
    assert "core-hours" not in tiles


def test_of_five_classes_the_top_5_are_not_shown() -> None:
    story = story_of(CLOTHES[:5])
    assert "test accuracy" in _tiles(story)
    assert "test top-5 accuracy" not in _tiles(story)


def test_without_anything_to_tell_there_are_no_figures() -> None:
    assert _tiles(story_of(evaluation=None, metrics=[], cost={})) == {}


def test_the_images_of_every_class_and_split_are_counted() -> None:
    splits = {"train": {"ant": 1200, "bee": 30, "wasp": 0}, "val": {"ant": 4, "bee": 2}}
    page = read(facts.data(DataStory(where="insects", splits=splits, image_size=(32, 48), channels=1, skipped=7)).html)
    summary, spread, counts = tables(page)
    assert dict(summary) == {  # type: ignore[arg-type]
        "from": "insects",
        "classes": "3",
        "seen at": "48x32 pixels, 1 channel",
        "left out": "7 images that could not be read",
    }
    assert spread[1:] == [["train", "1,230", "2", "30", "1,200"], ["val", "6", "2", "2", "4"]]
    assert counts == [["class", "train", "val"], ["ant", "1,200", "4"], ["bee", "30", "2"], ["wasp", "0", "0"]]
    shares = [node.get("style") for node in page.iter("span") if node.get("class") == "bar"]
    assert shares == ["--share:1", "--share:1", "--share:0.025", "--share:0.5", "--share:0", "--share:0"]


@pytest.mark.parametrize(("classes", "length"), [(20, 20), (21, 21), (1000, 1000), (1001, 1000)])
def test_of_very_many_classes_the_rarest_are_listed(classes: int, length: int) -> None:
    counts = {f"class {number}": 5000 - number for number in range(classes)}
    page = read(facts.data(DataStory(where="many", splits={"train": counts})).html)
    rows = tables(page)[-1][1:]
    assert len(rows) == length
    assert min(int(count.replace(",", "")) for _, count in rows) == 5000 - classes + 1
    (details,) = page.iter("details")
    assert (details.get("open") is not None) == (classes <= 20)


def test_every_cost_is_shown() -> None:
    story = story_of()
    costs = pairs(read(facts.cost(story.cost).html))
    assert costs.keys() == story.cost.keys()
    assert costs["parameters"] == "1,204,234"
    assert costs["core-hours"] == "0.0894"
    assert costs["training FLOPs"] == "0.0453 exaFLOPs"
    assert "Cost" not in headings(read(render(story_of(cost={}))))


def _leaves(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def test_every_setting_is_shown_with_its_value() -> None:
    story = dict(story_of().settings) | {"note": "<none>", "nothing": None, "long": "word " * 100}
    page = part(read(facts.settings(story).html), "Settings")
    values, expected = settings(page), dict(_leaves(story))
    assert values.keys() == expected.keys()
    for name, value in expected.items():
        content = value if isinstance(value, str) else json.dumps(value)
        assert values[name].endswith(content.strip()), name
    assert words(next(page.iter("summary"))) == f"All {len(expected)} settings"


def test_one_image_size_may_be_unknown() -> None:
    assert "seen at" not in pairs(read(facts.data(DataStory(where="x", splits={"train": {"a": 1}})).html))


def test_an_evaluation_without_images_has_no_accuracy() -> None:
    empty = evaluation_of(CLOTHES, confusion_of(10, 100) * 0)
    assert not [name for name in _tiles(story_of(evaluation=empty, metrics=[])) if "accuracy" in name]
