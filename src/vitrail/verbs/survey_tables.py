"""The tables of a survey: contents and problems, without empty ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar

from vitrail.base.readable import in_bytes
from vitrail.base.table import Table
from vitrail.data.survey.scan import short_name
from vitrail.data.survey.summary import ImageEntry, PairEntry, Problem, SplitProblem, Spread, Summary
from vitrail.verbs.clean import CleanSummary

MOST_CLASSES = 40
MOST_LISTED = 20

Item = TypeVar("Item")

_SAME = {"exact": "same pixels as", "near": "nearly the same as", "mirrored": "nearly the mirror image of"}


class DoubtEntry(TypedDict):
    """An image whose label is in doubt."""

    image: ImageEntry
    other: str
    """The class that its features speak for."""
    doubt: float


class ImpressionReport(TypedDict):
    """What the features of a model say, as plain values."""

    model: str
    digest: str | None
    agreement: float | None
    doubts: list[DoubtEntry]


class SurveyReport(Summary):
    """A summary with the files that were written."""

    files: bool
    """Whether all images are files of their own."""
    near_bits: int | None
    """Bits in which the hashes of near duplicates may differ; None where they were not searched."""
    features: ImpressionReport | None
    sheet: str | None
    clean: CleanSummary | None


def survey_tables(report: SurveyReport) -> list[Table]:
    """Lay out the report of a survey; names leave out the folder that all images are in."""
    rows = Rows(report["data"])
    left_out = report["clean"]["left_out"] if report["clean"] else []
    doubts = report["features"]["doubts"] if report["features"] else []
    lists = [
        _list("Could not be opened", report["skipped"], rows.problem),
        _list("Left alone", report["ignored"], rows.problem),
        _list("Unreadable", report["unreadable"], rows.split_problem),
        _list("Leaks: images that are also in a later split", report["leaks"], rows.pair),
        _list("Same pixels in different classes", report["conflicts"], rows.group),
        _list("Exact duplicates within a split", report["exact"], rows.group),
        _list("Near duplicates within a split", report["near"], rows.pair),
        _list("Labels in doubt", doubts, rows.doubt),
        _list("Left out", left_out, rows.split_problem),
    ]
    return [class_table(report), _image_table(report), *(table for table in lists if table.rows), _ending(report)]


def class_table(report: Summary) -> Table:
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


def _image_table(report: SurveyReport) -> Table:
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
    if (features := report["features"]) is not None:
        agreement = features["agreement"]
        told = "not judged" if agreement is None else f"{len(features['doubts']):,}"
        note = (
            "a class has fewer than ten images"
            if agreement is None
            else f"{features['model']} confirms {agreement:.0%}"
        )
        rows.append(("labels in doubt", told, note))
    return Table(title="Images", columns=("", "value", "note"), rows=tuple(rows))


def _ending(report: SurveyReport) -> Table:
    """Return the notes, and the written files."""
    sheet, clean = report["sheet"], report["clean"]
    notes = [f"note: {note}" for note in report["notes"]]
    notes += [f"The pictures are in {sheet}."] * (sheet is not None)
    if clean:
        notes.append(f"{clean['file']} lists {clean['images']:,} images; {len(clean['left_out']):,} were left out.")
        notes += [f"It is outside their folder: open it with `root='{clean['root']}'`."] * (clean["root"] is not None)
    return Table(notes=tuple(notes))


def _list(title: str, items: Sequence[Item], row: Callable[[Item], tuple[str, str]]) -> Table:
    more = len(items) - MOST_LISTED
    notes = (f"and {more:,} more; `to_dict()` lists all.",) if more > 0 else ()
    rows = tuple(row(item) for item in items[:MOST_LISTED])
    return Table(title=title, columns=("image", "note"), rows=rows, notes=notes)


@dataclass(frozen=True)
class Rows:
    """The rows of lists, with names from a folder on."""

    folder: str

    def problem(self, file: Problem) -> tuple[str, str]:
        """Name a file and what is wrong with it."""
        return self._name(file), file["reason"]

    def split_problem(self, image: SplitProblem) -> tuple[str, str]:
        """Do the same for an image of a split."""
        return self._name(image), f"{image['split']}: {image['reason']}"

    def pair(self, pair: PairEntry) -> tuple[str, str]:
        """Name two images that are the same picture."""
        image, other = pair["image"], pair["other"]
        score = "" if pair["kind"] == "exact" else f" ({pair['similarity']:.2f})"
        where = f" in {other['split']}" if other["split"] != image["split"] else ""
        classes = f"; {image['class']} and {other['class']}" if image["class"] != other["class"] else ""
        same = f"{_SAME[pair['kind']]} {self._name(other)}"
        return self._name(image), f"{image['split']}: {same}{where}{score}{classes}"

    def doubt(self, entry: DoubtEntry) -> tuple[str, str]:
        """Name an image whose label is in doubt, with both classes."""
        image = entry["image"]
        verdict = f"{image['class']}, but its features are those of {entry['other']} ({entry['doubt']:.2f})"
        return self._name(image), f"{image['split']}: {verdict}"

    def group(self, group: Sequence[ImageEntry]) -> tuple[str, str]:
        """Name images with the same pixels."""
        first, *rest = group
        several = len({image["class"] for image in group}) > 1
        names = [self._name(image) + (f" ({image['class'] or 'no label'})" if several else "") for image in rest[:3]]
        more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
        here = f"{first['class'] or 'no label'}, but " if several else ""
        return self._name(first), f"{first['split']}: {here}same pixels as {', '.join(names)}{more}"

    def _name(self, entry: Problem | ImageEntry) -> str:
        return short_name(entry["name"], self.folder)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "-"


def _spread(spread: Spread | None, form: str) -> str:
    if spread is None:
        return "-"
    low, middle, high = (form.format(value) for value in (spread["min"], spread["median"], spread["max"]))
    return low if low == high else f"{low} to {high}, median {middle}"
