"""The parts of a page: sections with a heading, and figures at the top."""

from dataclasses import dataclass

from vitrail.report import markup
from vitrail.report.markup import Html, join, tag, text


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number at the top of the page."""

    label: str
    """What it is."""
    value: str
    """The number as text."""
    note: str = ""
    """Its interval, or the images that it was measured on."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a page."""

    heading: str
    body: Html
    figures: tuple[Figure, ...] = ()
    """Its figures for the top of the page."""

    @property
    def html(self) -> Html:
        """The section as HTML."""
        return markup.section(self.heading, self.body)


def section(heading: str, *inside: Html, figures: tuple[Figure, ...] = ()) -> Section:
    """Make a section from markup."""
    return Section(heading=heading, body=join(inside), figures=figures)


def sentence(heading: str, words: str) -> Section:
    """Make a section of one sentence."""
    return section(heading, tag("p", text(words), class_="muted"))
