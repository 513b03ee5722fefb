"""The page of explanations: each image beside what the model looked at, and how far the maps can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass

from vitrail.report.charts import ROLES, Chart, Line, Points
from vitrail.report.curves import percent_axis
from vitrail.report.markup import Html, join, name, table, tag, text
from vitrail.report.overlay import Picture
from vitrail.report.plots import picture_uri
from vitrail.report.report import page, page_kind
from vitrail.report.section import Section, section

GENERATOR = "Vitrail explanations"
EXPLANATIONS = page_kind("a page of explanations", GENERATOR)


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One picture with the lines below it."""

    picture: Picture
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageStory:
    """One image: its name, the model's answer, and its pictures."""

    name: str
    answer: str
    panels: Sequence[Panel]


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodStory:
    """How a method fared: its mean curves, and its row in the table."""

    name: str
    row: Sequence[str]
    shares: Points
    deletion: Points
    insertion: Points
    baseline: bool = False
    """Whether it is what the others are compared with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplanationPage:
    """The content of the page."""

    title: str
    images: Sequence[ImageStory]
    methods: Sequence[MethodStory]
    """The methods that were measured, the best first, and random maps last; empty where nothing was measured."""
    columns: Sequence[str]
    """The headings of the rows of methods."""
    note: str
    """How to read these rows."""
    notes: Sequence[str] = ()
    """Sentences that a reader should see first."""


def render_explanations(story: ExplanationPage) -> str:
    """Return the page as HTML."""
    sections = [_image(image) for image in story.images]
    if story.methods:
        sections.insert(0, _trust(story))
    return page(story.title, story.notes, sections, generator=GENERATOR)


def panels(pictures: Sequence[Panel]) -> Html:
    """Show pictures beside each other, as many as there is room for."""
    return tag("div", *(_panel(panel) for panel in pictures), class_="panels")


def _panel(panel: Panel) -> Html:
    image = tag("img", src=picture_uri(panel.picture), alt=panel.lines[0] if panel.lines else "")
    return tag("figure", image, tag("p", join((name(line) for line in panel.lines), "<br>")))


def _image(image: ImageStory) -> Section:
    return section(image.name, tag("p", text(image.answer), class_="muted"), panels(image.panels))


def _trust(story: ExplanationPage) -> Section:
    rows = [tuple(text(cell) for cell in method.row) for method in story.methods]
    charts = [
        _chart("Deletion", "covered", story.methods, [method.deletion for method in story.methods]),
        _chart("Insertion", "uncovered", story.methods, [method.insertion for method in story.methods]),
    ]
    drawn = tag("div", *(chart.html(f"trust-{place}") for place, chart in enumerate(charts)), class_="two")
    note = tag("p", text(story.note), class_="muted")
    return section("Can the maps be trusted?", drawn, table(story.columns, rows), note)


def _chart(title: str, what: str, methods: Sequence[MethodStory], curves: Sequence[Points]) -> Chart:
    lines = [
        Line(
            name=method.name,
            x=method.shares,
            y=curve,
            role="muted" if method.baseline else ROLES[place % len(ROLES)],
            dashed=method.baseline,
        )
        for place, (method, curve) in enumerate(zip(methods, curves, strict=True))
    ]
    return Chart(
        title=title,
        lines=lines,
        x_label=f"share of the image that is {what}",
        y_label="probability of the class",
        x_axis=percent_axis,
        y_axis=percent_axis,
        y_range=(0.0, None),
    )
