"""Show the contents of a file of weights: config, parameters, labels, preprocessing, provenance, digest.

Example: vitrail show b16.safetensors
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.report import Positional, Switch, Weights, flag, print_json
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail show`."""

    file: Annotated[str, Positional, Weights, flag("FILE")]
    """A file or folder of weights, of any format, or the name of a published model."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Read and print."""
    description = vitrail.show(arguments.file, pickle=arguments.pickle, **hints(arguments))
    if arguments.json:
        print_json(description.to_dict())
        return
    print_tables(description.tables(), arguments)
