"""The facts of a run: its key figures, its data, its cost, its settings."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from vitrail.report.markup import Html, bar, folded, name, number, short, table, tag, text
from vitrail.report.section import Figure, Section, section
from vitrail.report.story import DataStory

FEW_CLASSES = 20
"""The most classes whose counts are shown without a click."""
MOST_WITH_BARS = 100
"""The most classes whose counts have bars."""
MOST_FOLDED = 1000
"""The most classes whose counts are all listed."""
LONG = 300
"""Letters from which a setting is folded."""


def data(story: DataStory) -> Section:
    """Show where the images came from, and how many of each class there are."""
    labels = list(dict.fromkeys(label for counts in story.splits.values() for label in counts))
    facts = {"from": story.where, "classes": number(len(labels))}
    if story.image_size is not None:
        height, width = story.image_size
        facts["seen at"] = f"{width}x{height} pixels, {story.channels} channel{'s' if story.channels != 1 else ''}"
    if story.skipped:
        facts["left out"] = f"{number(story.skipped)} images that could not be read"
    rows = ((name(split), *map(text, _spread(counts))) for split, counts in story.splits.items())
    splits = table(("split", "images", "classes", "smallest", "largest class"), rows)
    parts = [tag("div", facts_table(facts), splits, class_="two")]
    if labels:
        counts = _counts(story, labels)
        if len(labels) <= FEW_CLASSES:
            parts.append(tag("details", tag("summary", text("Images of each class")), counts, open="open"))
        else:
            rarest = f"The rarest {MOST_FOLDED:,} of {len(labels):,} classes"
            heading = "Images of each class" if len(labels) <= MOST_FOLDED else rarest
            parts.append(folded(heading, tag("div", counts, class_="tall")))
    return section("Data", *parts)


def cost(story: Mapping[str, float | int | str]) -> Section:
    """Show the cost of the run; its first three entries also stand at the top of the page."""
    figures = tuple(Figure(label=label, value=short(value)) for label, value in islice(story.items(), 3))
    return section("Cost", facts_table({label: number(value) for label, value in story.items()}), figures=figures)


def settings(story: Mapping[str, Any]) -> Section:
    """Show every setting, one table for each group, after a click."""
    groups: dict[str, dict[str, Any]] = {"": {}}
    for key, value in story.items():
        if isinstance(value, Mapping) and value:
            groups[key] = dict(_leaves(value))
        else:
            groups[""][key] = value
    tables = [
        tag("div", *([tag("h3", name(group))] if group else []), _settings(values))
        for group, values in groups.items()
        if values
    ]
    count = sum(map(len, groups.values()))
    inside = tag("div", *tables, class_="groups")
    return section("Settings", folded(f"All {count} settings" if count != 1 else "The setting", inside))


def facts_table(facts: Mapping[str, str]) -> Html:
    """Show names beside values."""
    rows = (tag("tr", tag("th", text(label), scope="row"), tag("td", name(value))) for label, value in facts.items())
    return tag("div", tag("table", tag("tbody", *rows), class_="facts"), class_="scroll")


def _spread(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the images and classes of a split, and its smallest and largest class."""
    present = [count for count in counts.values() if count]
    yield number(sum(present))
    yield number(len(present))
    yield number(min(present, default=0))
    yield number(max(present, default=0))


def _counts(story: DataStory, labels: list[str]) -> Html:
    splits = list(story.splits.values())
    if len(labels) > MOST_FOLDED:
        labels = sorted(labels, key=lambda label: sum(counts.get(label, 0) for counts in splits))[:MOST_FOLDED]
    largest = [max(counts.values(), default=0) for counts in splits]

    def cell(count: int, most: int) -> Html:
        return bar(count / max(most, 1), number(count)) if len(labels) <= MOST_WITH_BARS else text(number(count))

    rows = (
        (name(label), *(cell(counts.get(label, 0), most) for counts, most in zip(splits, largest, strict=True)))
        for label in labels
    )
    return table(("class", *story.splits), rows)


def _leaves(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings of a group with dotted names."""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _settings(values: Mapping[str, Any]) -> Html:
    rows = (tag("tr", tag("th", name(key), scope="row"), tag("td", _value(value))) for key, value in values.items())
    return tag("table", tag("tbody", *rows), class_="facts")


def _value(value: Any) -> Html:
    content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(content) <= LONG:
        return name(content)
    return folded(f"{len(content):,} letters", tag("div", name(content)))
