"""The tables of a survey: contents and problems, without empty ones."""

from collections.abc import Callable, Sequence
from typing import Any

from vitrail.base.readable import in_bytes
from vitrail.base.table import Table
from vitrail.data.survey.scan import short_name

MOST_CLASSES = 40
MOST_LISTED = 20

_SAME = {"exact": "same pixels as", "near": "nearly the same as", "mirrored": "nearly the mirror image of"}


def survey_tables(report: dict[str, Any]) -> list[Table]:
    """Lay out the summary of a survey."""
    report = _shortened(report, report["data"])
    clean = report["clean"] or {"left_out": []}
    lists = [
        _list("Could not be opened", report["skipped"], _named),
        _list("Left alone", report["ignored"], _named),
        _list("Unreadable", report["unreadable"], _reason),
        _list("Leaks: images that are also in a later split", report["leaks"], _pair),
        _list("Same pixels in different classes", report["conflicts"], _group),
        _list("Exact duplicates within a split", report["exact"], _group),
        _list("Near duplicates within a split", report["near"], _pair),
        _list("Left out", clean["left_out"], _reason),
    ]
    return [class_table(report), _image_table(report), *(table for table in lists if table.rows), _ending(report)]


def class_table(report: dict[str, Any]) -> Table:
    """Count the images of each class in each split; of many classes, the largest and the smallest."""
    splits, names = report["splits"], report["classes"]
    total = [sum(split["counts"][at] for split in splits.values()) for at in range(len(names))]
    indices, notes = list(range(len(names))), []
    if len(names) > MOST_CLASSES:
        order = sorted(indices, key=lambda at: (-total[at], at))
        indices = order[: MOST_CLASSES // 2] + order[-(MOST_CLASSES // 2) :]
        notes = [f"The {MOST_CLASSES // 2} largest and smallest of {len(names):,} classes; `to_dict()` lists all."]
    rows = [(names[at], *(f"{split['counts'][at]:,}" for split in splits.values())) for at in indices]
    if any(split["unlabelled"] for split in splits.values()):
        rows.append(("no label", *(f"{split['unlabelled']:,}" for split in splits.values())))
    rows.append(("all", *(f"{split['images']:,}" for split in splits.values())))
    title = f"{report['data']}: {report['images']:,} images, {len(names):,} class{'es' * (len(names) != 1)}"
    return Table(title=title, columns=("class", *splits), rows=tuple(rows), notes=tuple(notes))


def _image_table(report: dict[str, Any]) -> Table:
    rows = [
        ("format", _counts(report["formats"]), ""),
        ("mode", _counts(report["modes"]), ""),
        ("width", _spread(report["width"], "{:.0f}"), "pixels"),
        ("height", _spread(report["height"], "{:.0f}"), "pixels"),
        ("aspect", _spread(report["aspect"], "{:.2f}"), "width / height"),
        ("size", in_bytes(report["bytes"]), "of files or arrays"),
    ]
    for name, split in report["splits"].items():
        if split["imbalance"]:
            ratio, effective = split["imbalance"]["ratio"], split["imbalance"]["effective"]
            note = f"largest class / smallest; as {effective:.1f} equal classes"
            rows.append((f"imbalance of {name}", f"{ratio:.2f}", note))
    copies = sum(len(group) - 1 for group in report["exact"])
    near = "not searched" if report["near_bits"] is None else f"{len(report['near']):,} pairs"
    rows += [
        ("unreadable", f"{len(report['unreadable']):,}", ""),
        ("exact duplicates", f"{copies:,}", "copies within a split"),
        ("near duplicates", near, "within a split"),
        ("leaks", f"{len(report['leaks']):,}", "images that are also in a later split"),
    ]
    return Table(title="Images", columns=("", "value", "note"), rows=tuple(rows))


def _ending(report: dict[str, Any]) -> Table:
    """Return the notes, and the written files."""
    sheet, clean = report["sheet"], report["clean"]
    notes = [f"note: {note}" for note in report["notes"]]
    notes += [f"The pictures are in {sheet}."] * (sheet is not None)
    if clean:
        notes.append(f"{clean['file']} lists {clean['images']:,} images; {len(clean['left_out']):,} were left out.")
        notes += [f"It is outside their folder: open it with `root='{clean['root']}'`."] * (clean["root"] is not None)
    return Table(notes=tuple(notes))


def _list(title: str, images: Sequence[Any], row: Callable[[Any], tuple[str, str]]) -> Table:
    more = len(images) - MOST_LISTED
    notes = (f"and {more:,} more; `to_dict()` lists all.",) if more > 0 else ()
    rows = tuple(row(image) for image in images[:MOST_LISTED])
    return Table(title=title, columns=("image", "note"), rows=rows, notes=notes)


def _named(image: dict[str, Any]) -> tuple[str, str]:
    return image["name"], image["reason"]


def _reason(image: dict[str, Any]) -> tuple[str, str]:
    return image["name"], f"{image['split']}: {image['reason']}"


def _pair(pair: dict[str, Any]) -> tuple[str, str]:
    image, other = pair["image"], pair["other"]
    score = "" if pair["kind"] == "exact" else f" ({pair['similarity']:.2f})"
    where = f" in {other['split']}" if other["split"] != image["split"] else ""
    classes = f"; {image['class']} and {other['class']}" if image["class"] != other["class"] else ""
    return image["name"], f"{image['split']}: {_SAME[pair['kind']]} {other['name']}{where}{score}{classes}"


def _group(group: list[dict[str, Any]]) -> tuple[str, str]:
    first, *rest = group
    several = len({image["class"] for image in group}) > 1
    names = [image["name"] + (f" ({image['class'] or 'no label'})" if several else "") for image in rest[:3]]
    more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
    here = f"{first['class'] or 'no label'}, but " if several else ""
    return first["name"], f"{first['split']}: {here}same pixels as {', '.join(names)}{more}"


def _shortened(value: Any, where: str) -> Any:
    """Leave out of every name in a report the folder that all of them are in."""
    if isinstance(value, list):
        return [_shortened(one, where) for one in value]
    if isinstance(value, dict):
        return {key: short_name(one, where) if key == "name" else _shortened(one, where) for key, one in value.items()}
    return value


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "-"


def _spread(spread: dict[str, float] | None, form: str) -> str:
    if spread is None:
        return "-"
    low, middle, high = (form.format(spread[name]) for name in ("min", "median", "max"))
    return low if low == high else f"{low} to {high}, median {middle}"
