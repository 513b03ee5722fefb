"""Flags that the verbs which write a page about models share, and how their results are printed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol, runtime_checkable

from vitrail.base.table import Table
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.names import in_flags
from vitrail.cli.progress import progress
from vitrail.cli.report import Device, Switch, flag, print_json
from vitrail.cli.say import say
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class PageFlags(FileFlags):
    """Flags of a verb that measures models and may write a folder with a page."""

    labels: Annotated[str | None, flag("FILE", "the model's own")] = None
    """Names of the classes: a line for each, or a JSON list, in the order of the model's outputs."""
    out: Annotated[str | None, flag("FOLDER", "none")] = None
    """Write a page, its pictures, and its figures as files."""
    force: Switch = False
    """Allow --out to write into a folder with other files."""
    json: Switch = False
    """Write JSON to stdout."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""


@runtime_checkable
class Paged(Protocol):
    """A result that may have a page among its files."""

    @property
    def files(self) -> Mapping[str, Path]:
        """What was written, by its kind."""

    def tables(self) -> list[Table]:
        """Return the figures as tables."""

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""


def page_keywords(flags: PageFlags) -> dict[str, Any]:
    """Return the keywords that the functions of these verbs share."""
    return {
        "labels": flags.labels,
        "out": flags.out,
        "force": flags.force,
        "pickle": flags.pickle,
        "threads": flags.threads,
        "device": flags.device,
        "progress": progress,
        "note": lambda sentence: say(in_flags(sentence, type(flags))),
        **hints(flags),
    }


def print_page(result: Paged, flags: PageFlags) -> None:
    """Name the page on stderr, and print the figures; the files are written by then."""
    if "page" in result.files:
        say(f"the page is {result.files['page']}; open it in a browser.")
    if flags.json:
        print_json(result.to_dict())
    else:
        print_tables(result.tables(), flags)
