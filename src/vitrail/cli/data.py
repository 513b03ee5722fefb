"""Look at data before training on it: classes, splits, sizes, broken files, duplicates, and leaks into the test split.

DATA is a folder of class folders, a CSV or JSON-lines file, tar shards, arrays, a published data set as it was
published, or `sample`. Every image is read to its end once. Images are exact duplicates when their pixels are the same,
and near duplicates when they were only saved again, resized, mirrored, or made a little brighter.

Exit code 0 means surveyed, 1 that more is broken than --skip-broken allows.

Example: vitrail data photos/ --sheet photos.html
Example: vitrail data photos/ --clean photos/clean.csv
Example: vitrail data photos/ --features backbone --sheet photos.html
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import vitrail
from vitrail.base.errors import ConfigError, InputError
from vitrail.cli.names import in_flags
from vitrail.cli.progress import progress
from vitrail.cli.report import Positional, Switch, flag, parse_size, print_json
from vitrail.cli.say import say
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail data`."""

    data: Annotated[str, Positional, flag("DATA")]
    """A folder, a file, shards such as 'data-{000000..000099}.tar', or `sample`."""
    split: Annotated[str | None, flag("NAME", "all of them")] = None
    """Look at one split only: train, val, test, or another name that the data has."""
    val_fraction: float = 0.1
    """Share of the images, from 0 to 1, that becomes `val`, where the data has no splits."""
    seed: int = 0
    """Decides which images these are, and what augmentation shows."""
    root: Annotated[str | None, flag("FOLDER", "the folder of the file")] = None
    """Where the paths of a CSV or JSON-lines file begin."""
    near: Annotated[str, flag("BITS|off")] = "7"
    """Bits of 63, 0 to 11, in which the hashes of near duplicates may differ; `off` finds exact ones only."""
    features: Annotated[str | None, flag("MODEL", "none")] = None
    """Judge labels by the features of a model, such as `backbone`; with --sheet, a map of the images."""
    skip_broken: Annotated[str, flag("N|PERCENT")] = "100%"
    """Exit with code 1 if more images than this are broken or missing, such as 5 or 1%."""
    sheet: Annotated[str | None, flag("OUT.html", "none")] = None
    """Write a page with images of the classes, what augmentation makes of them, and the leaks."""
    augment: Annotated[Literal["paper", "strong", "none"], flag("paper|strong|none")] = "paper"
    """With --sheet: crop and flip; these with RandAugment and erasing; or nothing but resizing."""
    image_size: Annotated[
        str | None, flag("PIXELS|HxW", "that of all images if it is one and at most 224, else 224")
    ] = None
    """With --sheet: height and width of augmented images, in pixels."""
    clean: Annotated[str | None, flag("OUT.csv", "none")] = None
    """Write a list (path, label, split) of the images without the broken and leaked ones, to be opened as DATA."""
    force: Switch = False
    """Allow --sheet and --clean to replace files of another kind."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Survey and print; the files to write are written before."""
    from vitrail.data.budget import Budget

    budget = Budget.parse(arguments.skip_broken)
    survey = vitrail.survey(
        arguments.data,
        split=arguments.split,
        val_fraction=arguments.val_fraction,
        seed=arguments.seed,
        root=arguments.root,
        near=_bits(arguments.near),
        features=arguments.features,
        sheet=arguments.sheet,
        augment=arguments.augment,
        image_size=None if arguments.image_size is None else parse_size(arguments.image_size),
        clean=arguments.clean,
        force=arguments.force,
        progress=progress,
        note=say,
    )
    report = survey.to_dict()
    if arguments.json:
        print_json(report)
    else:
        print_tables(survey.tables(), arguments, notes=_wishes(report))
    try:
        survey.check_broken(budget)
    except InputError as error:
        say(in_flags(str(error), Arguments))
        return 1
    return 0


def _bits(text: str) -> int | None:
    if text == "off":
        return None
    if not re.fullmatch(r"[0-9]|1[01]", text):
        raise ConfigError(f"--near is {text!r}, but must be a number of bits from 0 to 11, or off.")
    return int(text)


def _wishes(report: dict[str, Any]) -> list[str]:
    """Name what else could be written."""
    wishes = ["--sheet OUT.html shows the classes and what augmentation does"] * (not report["sheet"])
    if report["files"] and not report["clean"] and (report["unreadable"] or report["leaks"] or report["exact"]):
        wishes.append("--clean OUT.csv writes a list without what is broken or leaked")
    return ["; ".join(wishes) + "."] if wishes else []
