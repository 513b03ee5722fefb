"""Check that a file of weights is whole, fits its own description, and has no NaN.

Our own files carry a SHA-256, so that a single changed bit shows; others are read to the end and matched against
their layout. Exit code 0 means that the file is good, 1 that it is not.

Example: vitrail verify b16.safetensors
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.names import in_flags
from vitrail.cli.report import Positional, Switch, Weights, flag, print_json
from vitrail.cli.say import show


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail verify`."""

    file: Annotated[str, Positional, Weights, flag("FILE")]
    """A file or folder of weights, of any format, or the name of a published model."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Check, print, and return 1 if anything is wrong."""
    verification = vitrail.verify(arguments.file, pickle=arguments.pickle, **hints(arguments))
    if arguments.json:
        print_json(verification.to_dict())
    else:
        for sentence in verification.sentences():
            show(in_flags(sentence, Arguments))
    return int(not verification.good)
