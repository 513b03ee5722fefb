"""List the studies of `vitrail study`: the question, how many runs a seed takes, and what the paper found.

Example: vitrail studies
"""

from dataclasses import dataclass

import vitrail
from vitrail.cli.report import Switch, print_json
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail studies`."""

    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Print a line for each study."""
    studies = vitrail.list_studies()
    if arguments.json:
        print_json(studies.to_dict())
        return
    print_tables(studies.tables(), arguments)
