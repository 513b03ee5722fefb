"""Write a model in another format: Google, big_vision, timm, Hugging Face, torchvision or our own.

The source may be of any of these, and is recognised by its contents. This is also the one way in for torch's
pickled files (.pth, .bin), of which only the tensors are read.

Example: vitrail convert B_16.npz b16.safetensors
Example: vitrail convert b16.safetensors b16-hf --to huggingface
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.checkpoint.formats.names import FormatName
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.names import in_flags
from vitrail.cli.report import Positional, Switch, Weights, flag, print_json
from vitrail.cli.say import show


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail convert`."""

    source: Annotated[str, Positional, Weights, flag("SOURCE")]
    """A file or folder of weights, or the name of a published model."""
    destination: Annotated[str, Positional, flag("DESTINATION")]
    """The file, or for Hugging Face and timm the folder, to write."""
    to: FormatName = "vitrail"
    """The format to write."""
    lossy: Switch = False
    """Allow the numerics of the target library to replace the model's own, which changes outputs a little."""
    force: Switch = False
    """Replace DESTINATION even if it is not a converted model of that format."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Read, write, and report what was done."""
    conversion = vitrail.convert(
        arguments.source,
        arguments.destination,
        to=arguments.to,
        lossy=arguments.lossy,
        force=arguments.force,
        **hints(arguments),
    )
    if arguments.json:
        print_json(conversion.to_dict())
        return
    for sentence in conversion.sentences():
        show(in_flags(sentence, Arguments))
