"""What pages are made of: sections with a heading, and figures that stand at the top of the page."""

from dataclasses import dataclass

from vitrail.report import markup
from vitrail.report.markup import Html, join, tag, text


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number at the top of the page."""

    label: str
    """What it is."""
    value: str
    """The number as a person reads it."""
    note: str = ""
    """Its interval, or what it was measured on."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a page."""

    heading: str
    body: Html
    figures: tuple[Figure, ...] = ()
    """What the reader should see of it first, at the top of the page."""

    @property
    def html(self) -> Html:
        """The section as it stands on the page."""
        return markup.section(self.heading, self.body)


def section(heading: str, *inside: Html, figures: tuple[Figure, ...] = ()) -> Section:
    """Make a section of pieces of markup."""
    return Section(heading=heading, body=join(inside), figures=figures)


def sentence(heading: str, words: str) -> Section:
    """Make a section that says one thing."""
    return section(heading, tag("p", text(words), class_="muted"))
