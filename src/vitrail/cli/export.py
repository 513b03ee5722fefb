"""Export a model as one file that ONNX Runtime, OpenVINO or torch run without Vitrail, with everything inside.

Whole images of any size go in; preprocessing is part of the graph, and so are class names, probabilities and the first
classes. `vitrail predict` and `vitrail evaluate` take the file like any model. See docs/runtime.md.

Example: vitrail export model.safetensors model.onnx
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.base.errors import ConfigError
from vitrail.cli.engine_flags import MergeTokens
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.report import Positional, Switch, Weights, flag, print_json
from vitrail.cli.say import say
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail export`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """A file or folder of weights, of any format that `vitrail show` reads, or the name of a published model."""
    out: Annotated[str, Positional, flag("OUT.onnx|.xml|.pt2")]
    """The file to write; .xml is OpenVINO's, with its weights in a .bin beside it."""
    format: Annotated[Literal["onnx", "openvino", "pt2"] | None, flag("onnx|openvino|pt2", "that of OUT")] = None
    """The format; OUT must have its extension."""
    raw: Switch = False
    """Take the model's own input, resized and normalised before, in place of whole images."""
    attention: Annotated[tuple[str, ...], flag("all|INT [...]", "none")] = ()
    """Add the attention maps of all blocks, or of some, from 0, as an output, for `vitrail explain`."""
    int8: Switch = False
    """Compute in int8; layers that this costs most stay in float32."""
    calibrate: Annotated[str | None, flag("DATA", "none")] = None
    """With --int8: images like those that the model will see, a few hundred of whatever `vitrail data` opens."""
    agreement: Annotated[float, flag("PERCENT", "99")] = 99.0
    """With --int8: how many of the images must keep their first class."""
    merge_tokens: MergeTokens = 0
    """Let each block merge this many tokens into others that are alike: faster, less exact."""
    page: Annotated[str | None, flag("FOLDER", "none")] = None
    """Also write a page that runs the file in a browser; see docs/runtime.md."""
    opset: int = 20
    """The version of ONNX's operations."""
    labels: Annotated[str | None, flag("FILE", "the model's own")] = None
    """Names of the classes: a line for each, or a JSON list, in the order of the model's outputs."""
    force: Switch = False
    """Allow OUT to replace a file of another kind."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Export and print."""
    from vitrail.verbs.export import export

    result = export(
        arguments.model,
        arguments.out,
        format=arguments.format,
        raw=arguments.raw,
        attention=blocks_of(arguments.attention),
        int8=arguments.int8,
        calibrate=arguments.calibrate,
        agreement=arguments.agreement,
        merge_tokens=arguments.merge_tokens,
        page=arguments.page,
        opset=arguments.opset,
        labels=arguments.labels,
        force=arguments.force,
        threads=arguments.threads,
        pickle=arguments.pickle,
        note=lambda sentence: say(sentence),
        **hints(arguments),
    )
    if arguments.json:
        print_json(result.to_dict())
    else:
        print_tables(result.tables(), arguments)


def blocks_of(words: tuple[str, ...]) -> Literal["all"] | list[int] | None:
    """Read the blocks whose attention maps are wanted."""
    if words in ((), ("all",)):
        return "all" if words else None
    if not all(re.fullmatch(r"-?[0-9]{1,6}", word) for word in words):
        raise ConfigError(f"`attention` is {' '.join(words)!r}, but must be all, or numbers of blocks such as 0 11.")
    return [int(word) for word in words]
