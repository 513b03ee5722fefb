"""Measure the engines on this machine with a model: images in a second, latency, memory, start-up, agreement.

Each engine runs in a process of its own: torch, torch compiled and frozen, native where there is a C++ compiler, and
ONNX Runtime and OpenVINO where they are installed. The last line has the limit: the speed of the fastest product of
matrices on this machine. Times taken while other programs run are not worth much.

Example: vitrail engines model.safetensors --batch 1 8 32
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.cli.engine_flags import MergeTokens
from vitrail.cli.model_file import FileFlags, hints
from vitrail.cli.progress import progress
from vitrail.cli.report import Positional, Switch, Weights, flag, print_json
from vitrail.cli.say import say
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail engines`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """A file or folder of weights, of any format that `vitrail show` reads, or the name of a published model."""
    batch: Annotated[tuple[int, ...], flag("INT [...]", "1 8 32")] = (1, 8, 32)
    """Images that go through the model at once; each is measured."""
    engine: Annotated[
        tuple[Literal["torch", "compiled", "native", "onnxruntime", "openvino"], ...], flag("NAME [...]", "all")
    ] = ()
    """Engines to measure: torch, compiled, native, onnxruntime, openvino."""
    calibrate: Annotated[str | None, flag("DATA", "none")] = None
    """Measure int8 in all engines, not only in native, with images like those that the model will see, a few hundred of
    what `vitrail data` opens."""
    merge_tokens: MergeTokens = 0
    """Let each block merge this many tokens into others that are alike: faster, less exact."""
    seconds: Annotated[float, flag("SECONDS", "2")] = 2.0
    """How long the passes of each batch are repeated."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Measure and print."""
    from vitrail.verbs.engines import engines

    table = engines(
        arguments.model,
        batch=arguments.batch,
        engine=arguments.engine,
        calibrate=arguments.calibrate,
        merge_tokens=arguments.merge_tokens,
        seconds=arguments.seconds,
        threads=arguments.threads,
        pickle=arguments.pickle,
        progress=progress,
        note=lambda sentence: say(sentence),
        **hints(arguments),
    )
    if arguments.json:
        print_json(table.to_dict())
    else:
        print_tables(table.tables(), arguments)
