"""Which engine runs a network, and with which numbers; imports neither torch nor a runtime."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, get_args

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.numbers import MOST_MERGED, check_whole
from vitrail.runtime.native_library import COMPILER_COMMAND, find_compiler

EngineName = Literal["auto", "torch", "compiled", "native", "onnxruntime", "openvino"]
Precision = Literal["float32", "bfloat16", "int8"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "onnxruntime": ("onnx", ("onnxruntime", "onnx", "onnxscript")),
    "openvino": ("openvino", ("openvino", "onnx", "onnxscript")),
}
"""For each engine that is an extra: the extra's name, and the packages that a model of ours needs to run in it."""


NO_BFLOAT16 = {"onnxruntime": "ONNX Runtime", "native": "the engine native"}
"""Engines without bfloat16 on a CPU, and what they are called."""


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """What computes; None leaves it as it is: torch for weights, its own runtime for an exported file."""

    engine: EngineName | None = None
    """The runtime; `auto` measures all that are installed, once for a model and machine, and takes the fastest."""
    precision: Precision | None = None
    """The numbers that it computes with; None takes those of the weights."""
    calibrate: str | os.PathLike[str] | None = None
    """With int8: images that show the range of every layer, whatever `vitrail.data.open` opens; native needs none."""
    merge_tokens: int = 0
    """How many tokens each block merges into others; 0 merges none."""

    def __post_init__(self) -> None:
        """Refuse names of neither, and settings that nothing would read."""
        for name, value, choices in (("engine", self.engine, ENGINES), ("precision", self.precision, PRECISIONS)):
            if value is not None and value not in choices:
                near = did_you_mean(str(value), choices)
                raise ConfigError(f"`{name}` is {value!r}, but must be one of {', '.join(choices)}.{near}")
        if self.calibrate is not None and self.precision != "int8":
            raise ConfigError("`calibrate` is for int8 alone; give `precision=int8` beside it, or leave it out.")
        check_whole("merge_tokens", self.merge_tokens, least=0, most=MOST_MERGED)

    @property
    def given(self) -> bool:
        """Whether anything but the usual was chosen."""
        return self != EngineChoice()


def missing_packages(engine: str) -> tuple[str, ...]:
    """Return what an engine needs that is not installed: packages, or a compiler."""
    if engine == "native" and find_compiler() is None:
        return ("a C++ compiler",)
    _, packages = PACKAGES.get(engine, ("", ()))
    return tuple(package for package in packages if find_spec(package) is None)


def install_command(engine: str) -> str:
    """Return the command that installs what an engine needs."""
    if engine == "native":
        return COMPILER_COMMAND
    return f"pip install 'vitrail[{PACKAGES[engine][0]}]'"


def check_installed(engine: str) -> None:
    """Refuse an engine that is not installed."""
    if missing := missing_packages(engine):
        raise ConfigError(
            f"`engine={engine}` needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not "
            f"installed; run `{install_command(engine)}`."
        )


def check_session(engine: str) -> None:
    """Refuse a runtime that is not installed; to run a file, it is all that is needed."""
    if find_spec(engine) is None:
        raise ConfigError(f"this file runs in {engine}, which is not installed; run `{install_command(engine)}`.")
