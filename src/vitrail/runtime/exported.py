"""An exported file, opened in a runtime; imports no torch."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.base.extras import require
from vitrail.data.preprocessing import PRESETS, Preprocessing, preset
from vitrail.runtime.card import KEY, Card, read_card
from vitrail.runtime.choice import PACKAGES, EngineChoice, EngineName, check_session
from vitrail.runtime.digest import check_digest
from vitrail.runtime.onnx_properties import read_properties
from vitrail.runtime.session import Session, fits

ENGINES: dict[str, tuple[EngineName, ...]] = {".onnx": ("onnxruntime", "openvino"), ".xml": ("openvino",)}
"""The engines that run each kind of file, the usual one first."""
PROGRAM = ".pt2"


@dataclass(frozen=True, kw_only=True, eq=False)
class Exported:
    """A graph that is ready to run, with what its file says about it."""

    path: Path
    session: Session
    card: Card
    digest: str
    """SHA-256: the one that the file carries and that was checked, or that of a file of another tool."""
    names: dict[str, str]
    """The graph's own name for each output of ours."""


def is_exported(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of an exported model, by its ending."""
    return Path(path).suffix.lower() in (*ENGINES, PROGRAM)


def open_exported(
    path: str | os.PathLike[str],
    choice: EngineChoice,
    *,
    threads: int,
    architecture: str | None = None,
    once: bool = False,
) -> Exported:
    """Open an exported file in the chosen engine, or in its usual one; `once` is for a single image.

    A file of another tool says nothing about itself; `architecture` is then the name of a preset of preprocessing.
    """
    file = Path(path)
    for name, value in (("calibrate", choice.calibrate), ("merge_tokens", choice.merge_tokens)):
        if value:
            raise ConfigError(f"{file} is a graph that was exported with its settings; leave out `{name}`.")
    engine = _engine(file, choice)
    check_session(engine)
    if not file.exists():
        raise CheckpointError(f"there is no file {file}.")
    with ThreadPoolExecutor(1) as reader:  # the file is read while the runtime is imported, and before it is run
        checking = reader.submit(check_digest, _files(file))
        require(engine, extra=PACKAGES[engine][0], purpose="running an exported file")
        digest = checking.result()
    session = _open(file, engine, threads, once=once)
    text = read_properties(file).get(KEY) if file.suffix.lower() == ".onnx" else session.properties.get(KEY)
    if text is None:
        card, names = _stranger(file, session, architecture)
        return Exported(path=file, session=session, card=card, digest=_sha256(file), names=names)
    if architecture is not None:
        raise ConfigError(f"{file} says itself how images become its input; leave out `architecture`.")
    if digest is None:
        raise CheckpointError(f"{file} has facts of an exported model but no digest; export the model again.")
    card = read_card(text, file)
    check_card(card, session, file)
    if choice.precision not in (None, card.precision):
        raise ConfigError(
            f"{file} was exported in {card.precision}, and computes in that; leave out `precision`, or export it again."
        )
    return Exported(path=file, session=session, card=card, digest=digest, names={name: name for name in card.outputs})


def check_card(card: Card, session: Session, path: Path) -> None:
    """Refuse a file whose facts and graph contradict each other."""
    channels, size = card.preprocessing.channels, card.preprocessing.image_size
    shape, kind = ((channels, *size), "float32") if card.entry == "input" else ((None, None, channels), "uint8")
    if card.entry == "pixels":
        shape = (*size, channels)
    graph = dict(zip(session.outputs, session.output_shapes, strict=True))
    widths = {"logits": card.num_classes, "representation": card.feature_width}
    problems = [f"no output {name}" for name in card.outputs if name not in graph]
    problems += [
        f"{name} of {list(graph[name])} where {width} numbers were to be"
        for name, width in widths.items()
        if name in card.outputs and name in graph and not fits(graph[name], (None, width))
    ]
    if session.kind != kind or not fits(session.shape, (None, *shape)):
        problems.append(f"an input of {session.kind} and {list(session.shape)} for {card.entry}s of {list(shape)}")
    if card.labels is not None and len(card.labels) != card.num_classes:
        problems.append(f"{len(card.labels)} names of {card.num_classes} classes")
    if problems:
        raise CheckpointError(f"{path} contradicts its own facts: {'; '.join(problems)}; export the model again.")


def _engine(path: Path, choice: EngineChoice) -> EngineName:
    """Return the engine for a file, or refuse one that does not run such files."""
    if path.suffix.lower() == PROGRAM:
        raise ConfigError(
            f"{path} is a program of torch.export, whose loader runs pickled code, so it is not opened here; use "
            "torch.export.load, or export the model as .onnx."
        )
    engines = ENGINES[path.suffix.lower()]
    engine = engines[0] if choice.engine in (None, "auto") else choice.engine
    if engine not in engines:
        raise ConfigError(f"{path} does not run in {engine}; choose {' or '.join(engines)} as `engine`.")
    return engine


def _files(path: Path) -> list[Path]:
    """Return the files of an exported model; OpenVINO has its weights in a second one."""
    if path.suffix.lower() == ".onnx":
        return [path]
    weights = path.with_suffix(".bin")
    if not weights.is_file():
        raise CheckpointError(f"there is no {weights}, which holds the weights of {path}; both belong together.")
    return [path, weights]


def _open(path: Path, engine: EngineName, threads: int, *, once: bool) -> Any:
    if engine == "onnxruntime":
        from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession

        return OnnxRuntimeSession(path, threads=threads, called=str(path), once=once)
    from vitrail.runtime.openvino_session import OpenVinoSession

    return OpenVinoSession(path, threads=threads, called=str(path))


def _stranger(path: Path, session: Session, architecture: str | None) -> tuple[Card, dict[str, str]]:
    """Describe a graph of another tool by its input and output."""
    shape, kind = session.shape, session.kind
    sizes = [side if isinstance(side, int) else None for side in shape]
    if kind != "float32" or len(sizes) != 4 or sizes[1] not in (1, 3) or None in sizes[2:]:
        raise CheckpointError(
            f"{path} has no facts of `vitrail export`, and takes {kind} of the shape {list(shape)}; a graph of another "
            "tool must take float32 of (batch, channels, height, width), with the last three known."
        )
    classes = session.output_shapes[0][-1] if len(session.output_shapes[0]) == 2 else None
    if not isinstance(classes, int):
        raise CheckpointError(
            f"{path} has no facts of `vitrail export`, and its first output is {list(session.output_shapes[0])}; a "
            "graph of another tool must give (batch, classes) first."
        )
    if architecture not in PRESETS:
        raise CheckpointError(
            f"{path} does not say how images become its input; name its way by `architecture`, one of "
            f"{', '.join(PRESETS)}."
        )
    height, width = (side for side in sizes[2:] if side is not None)
    pixels: Preprocessing = preset(architecture, image_size=(height, width), channels=sizes[1] or 3)
    card = Card(
        entry="input", preprocessing=pixels, num_classes=classes, feature_width=0, outputs=("logits",), model="a graph"
    )
    return card, {"logits": session.outputs[0]}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
