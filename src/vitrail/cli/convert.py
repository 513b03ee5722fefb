"""Write a model in another format: Google, big_vision, timm, Hugging Face, torchvision or our own.

The source may be of any of these, and is recognised by what it holds. This is also the one way in for torch's
pickled files (.pth, .bin), of which only the tensors are read.

Example: vitrail convert B_16.npz b16.safetensors
Example: vitrail convert b16.safetensors b16-hf --to huggingface
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vitrail.base.errors import ConfigError
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import sha256, with_versions
from vitrail.checkpoint.formats.all import FormatName, write_any
from vitrail.checkpoint.store import write_store
from vitrail.cli.model_file import FileFlags, open_file, parameters
from vitrail.cli.report import Positional, Switch, flag, print_json


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail convert`."""

    source: Annotated[str, Positional, flag("SOURCE")]
    """A file or folder of weights."""
    destination: Annotated[str, Positional, flag("DESTINATION")]
    """The file, or for Hugging Face and timm the folder, to write."""
    to: FormatName = "vitrail"
    """The format to write."""
    lossy: Switch = False
    """Let the numerics of the target library replace the model's own, which changes outputs a little."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Read, write, and say what was done."""
    source, destination = Path(arguments.source), Path(arguments.destination)
    if source.exists() and destination.exists() and source.samefile(destination):
        raise ConfigError(f"{source} is both source and destination; give another name to write to.")
    contents = open_file(arguments.source, arguments, pickle=True)
    written = _write(contents, source, destination, arguments)
    report = {
        "source": str(source),
        "from": contents.format,
        "destination": str(destination),
        "to": arguments.to,
        "parameters": parameters(written),
        "digest": written.digest,
        "notes": list(written.notes),
    }
    if arguments.json:
        print_json(report)
        return
    print(f"{source} ({contents.format}) -> {destination} ({arguments.to}): {report['parameters']:,} parameters")
    for note in written.notes:
        print(f"note: {note}")


def _write(contents: Contents, source: Path, destination: Path, arguments: Arguments) -> Contents:
    if arguments.to != "vitrail":
        return write_any(contents, destination, arguments.to, lossy=arguments.lossy)
    parent = contents.digest or sha256(source)
    history = {"source": {"file": source.name, "format": contents.format}, "parent": parent}
    contents = with_versions(contents.noting(provenance={**contents.provenance, **history}))
    return contents.noting(digest=write_store(contents, destination))
