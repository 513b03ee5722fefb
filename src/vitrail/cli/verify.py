"""Check that a file of weights is whole, fits its own description, and has no NaN.

Our own files carry a SHA-256, so that a single changed bit shows; others are read to the end and matched against
their layout. Exit code 0 says that the file is good, 1 that it is not.

Example: vitrail verify b16.safetensors
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vitrail.base.errors import CheckpointError, InputError
from vitrail.checkpoint.files import is_finite
from vitrail.cli.model_file import FileFlags, open_file
from vitrail.cli.report import Positional, Switch, flag, print_json


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail verify`."""

    file: Annotated[str, Positional, flag("FILE")]
    """A file or folder of weights, of any format."""
    pickle: Switch = False
    """Let torch's pickled files be opened, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Check, print, and return 1 if anything is wrong."""
    if not Path(arguments.file).is_dir() and not Path(arguments.file).is_file():
        raise InputError(f"there is no file or folder {arguments.file}.")
    problems, layout, digest, count = [], None, None, 0
    try:
        contents = open_file(arguments.file, arguments, pickle=arguments.pickle)
        layout, digest, count = contents.format, contents.digest, len(contents.tensors)
        bad = [name for name in contents.tensors if not is_finite(contents.tensors[name])]
        problems += [f"NaN or infinite weights in {', '.join(bad)}."] if bad else []
    except CheckpointError as error:
        problems.append(str(error))
    if arguments.json:
        print_json(
            {"file": arguments.file, "good": not problems, "format": layout, "tensors": count, "digest": digest}
            | {"problems": problems}
        )
        return int(bool(problems))
    for problem in problems:
        print(f"{arguments.file}: {problem}")
    if not problems:
        checked = f"SHA-256 {digest} holds" if digest else f"{layout} files carry no digest; the layout fits"
        print(f"{arguments.file}: good. {count} tensors, all finite; {checked}.")
    return int(bool(problems))
