"""Compare two models, whatever their formats: settings, and tensor by tensor the largest difference.

Exit code 0 means the same within the tolerance, 1 that they differ.

Example: vitrail diff B_16.npz b16.safetensors
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.report import Positional, Switch, Weights, flag, print_json
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail diff`."""

    first: Annotated[str, Positional, Weights, flag("FIRST")]
    """A file or folder of weights, of any format, or the name of a published model."""
    second: Annotated[str, Positional, Weights, flag("SECOND")]
    """Another one, or the name of a published model."""
    tolerance: float = 0.0
    """Differences of a weight up to this are ignored."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Compare, print, and return 1 if there is a difference."""
    difference = vitrail.diff(
        arguments.first,
        arguments.second,
        tolerance=arguments.tolerance,
        pickle=arguments.pickle,
        **hints(arguments),
    )
    if arguments.json:
        print_json(difference.to_dict())
    else:
        print_tables(difference.tables(), arguments)
    return int(not difference.same)
