"""Tell what a file of weights holds: config, parameters, labels, preprocessing, provenance, digest.

Example: vitrail show b16.safetensors
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.checkpoint.files import ZERO_HEAD, has_zero_head
from vitrail.checkpoint.store import describe
from vitrail.cli.model_file import FileFlags, open_file, parameters
from vitrail.cli.report import Positional, Switch, flag, print_json, print_table


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail show`."""

    file: Annotated[str, Positional, flag("FILE")]
    """A file or folder of weights, of any format."""
    pickle: Switch = False
    """Let torch's pickled files be opened, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Read and print."""
    contents = open_file(arguments.file, arguments, pickle=arguments.pickle)
    report = {
        "file": arguments.file,
        "format": contents.format,
        "parameters": parameters(contents),
        "types": sorted({str(spec.dtype).removeprefix("torch.") for spec in contents.tensors.specs.values()}),
        **describe(contents),
        "digest": contents.digest,
        "notes": [*contents.notes, *([ZERO_HEAD] if has_zero_head(contents) else [])],
    }
    if arguments.json:
        print_json(report)
        return
    rows = [
        ("format", contents.format),
        ("parameters", f"{report['parameters']:,}"),
        ("types", ", ".join(report["types"])),
    ]
    for part in ("config", "numerics", "preprocessing", "provenance"):
        rows += [(f"{part}.{name}", _text(value)) for name, value in (report[part] or {}).items()]
    rows += [("labels", _shortened(contents.labels)), ("sha256", contents.digest or "none in this format")]
    print_table(arguments.file, ("", "value"), rows, notes=[f"note: {note}" for note in report["notes"]])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _shortened(labels: tuple[str, ...] | None) -> str:
    if labels is None:
        return "none"
    return f"{len(labels)}: " + ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
