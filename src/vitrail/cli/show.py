"""Tell what a file of weights holds: config, parameters, labels, preprocessing, provenance, digest.

Example: vitrail show b16.safetensors
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.checkpoint.files import ZERO_HEAD, has_zero_head
from vitrail.checkpoint.store import describe
from vitrail.cli.model_file import FileFlags, open_file, parameters
from vitrail.cli.report import Positional, Switch, flag, print_json, print_table, value_text


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
    rows += _nested({part: report[part] or {} for part in ("config", "numerics", "preprocessing", "provenance")})
    rows.append(("labels", "none" if contents.labels is None else value_text(list(contents.labels))))
    digest = f"sha256: {contents.digest or 'none in this format'}"  # below the table, where a line has room for it
    print_table(arguments.file, ("", "value"), rows, notes=[digest, *(f"note: {note}" for note in report["notes"])])


def _nested(settings: Mapping[str, Any], indent: str = "") -> list[tuple[str, str]]:
    """Write settings as rows, those inside others below them and further to the right."""
    rows: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            rows += [(f"{indent}{name}", ""), *_nested(value, f"{indent}  ")]
        else:
            rows.append((f"{indent}{name}", value_text(value)))
    return rows
