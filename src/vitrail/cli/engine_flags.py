"""Flags of the verbs that run a model: what computes, and with which numbers; imports no torch."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from vitrail.cli.flags import flag
from vitrail.cli.model_file import FileFlags
from vitrail.runtime.choice import EngineChoice

MergeTokens = Annotated[int, flag("INT", "0: none")]
"""How many tokens each block merges."""


@dataclass(frozen=True, kw_only=True)
class EngineFlags(FileFlags):
    """What computes."""

    engine: Annotated[
        Literal["auto", "torch", "compiled", "native", "onnxruntime", "openvino"] | None,
        flag("auto|torch|compiled|native|onnxruntime|openvino", "torch; of an exported file, its own"),
    ] = None
    """What computes; native is compiled once, in seconds; compiled and auto take a minute first, and pay for many
    images."""
    precision: Annotated[
        Literal["float32", "bfloat16", "int8"] | None, flag("float32|bfloat16|int8", "that of the file")
    ] = None
    """Numbers to compute with: bfloat16 where the processor has it, int8 in native, onnxruntime and openvino."""
    calibrate: Annotated[str | None, flag("DATA", "none")] = None
    """With --precision int8, but not for native: images like those that the model will see, a few hundred of whatever
    `vitrail data` opens."""
    merge_tokens: MergeTokens = 0
    """Let each block merge this many tokens into others that are alike: faster, less exact."""


def engine_keywords(flags: EngineFlags) -> dict[str, Any]:
    """Return the keywords of a function that takes an engine."""
    return {
        "engine": flags.engine,
        "precision": flags.precision,
        "calibrate": flags.calibrate,
        "merge_tokens": flags.merge_tokens,
    }


def engine_choice(flags: EngineFlags) -> EngineChoice:
    """Return what computes."""
    return EngineChoice(**engine_keywords(flags))
