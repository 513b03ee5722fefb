"""A network to measure: a file, a model in memory, a classifier, or any engine."""

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note, unheard
from vitrail.base.ranks import Ranks, as_device
from vitrail.checkpoint.assembly import assemble
from vitrail.checkpoint.files import head_notes, read
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.info import ModelInfo
from vitrail.model.patches import Size
from vitrail.prediction.classifier import Classifier
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import Engine, TorchEngine, torch_engine
from vitrail.runtime.exported import is_exported, open_exported
from vitrail.runtime.graph_engine import exported_engine
from vitrail.runtime.make import make_engine
from vitrail.runtime.zeroshot import TextEmbeddings, read_text_embeddings, zero_shot
from vitrail.verbs.computing import computing

ModelLike = str | os.PathLike[str] | Model | Classifier | Engine
"""A file or folder of weights, a model in memory, a classifier or an engine."""
USUAL = EngineChoice()
"""torch, in the type of the weights."""


@dataclass(frozen=True, kw_only=True)
class FileSettings:
    """How a file of weights is read; a model in memory takes none of these."""

    image_size: int | Size | None = None
    """Height and width of the model's images, where the file does not state them or others are wanted."""
    num_heads: int | None = None
    """Attention heads, where the file does not state them."""
    architecture: str | None = None
    """The model's name in its library, or of a preset of preprocessing, where the file does not state them."""
    pickle: bool = False
    """Whether torch's pickled files may be opened, of which only tensors are read."""
    device: str | torch.device = "auto"
    """Where the model computes."""

    def __post_init__(self) -> None:
        """Refuse a device that is not there, before anything is read."""
        if str(self.device) != "auto":
            as_device(self.device)

    @property
    def overrides(self) -> dict[str, Any]:
        """The settings of the model that have a value."""
        named = {"image_size": self.image_size, "num_heads": self.num_heads, "architecture": self.architecture}
        return {name: value for name, value in named.items() if value is not None}

    def for_graph(self, name: str) -> str | None:
        """Refuse settings of weights for a graph, which has its own; return the preset of its preprocessing."""
        overrides = [setting for setting in self.overrides if setting != "architecture"]
        if overrides:
            listed = ", ".join(f"`{setting}`" for setting in overrides)
            raise ConfigError(f"{name} is a graph that was exported with its settings; leave out {listed}.")
        if str(self.device) not in ("auto", "cpu"):
            raise ConfigError(f"{name} is a graph that runs on the CPU, not on {self.device}; leave out `device`.")
        return self.architecture

    def check(self, device: torch.device) -> None:
        """Refuse settings of a file, and another device, for a model that is in memory on a device."""
        for name in (*self.overrides, *(["pickle"] if self.pickle else [])):
            raise ConfigError(
                f"{name} is for models that are read from a file, but this one is in memory; leave it out."
            )
        if str(self.device) != "auto" and torch.device(self.device).type != device.type:
            raise ConfigError(f"device is {self.device}, but the model is in memory on {device}; move it there first.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """An engine, and facts about the model behind it."""

    engine: Engine
    name: str
    """Its name in messages: its file, if it has one."""
    info: ModelInfo = field(default_factory=ModelInfo)
    """Labels, preprocessing and provenance of the weights."""
    digest: str | None = None
    """SHA-256 of the file; None for a model in memory, which may have changed since it was read."""
    config: ModelConfig | None = None
    """The settings of the model; None for an engine of another kind."""
    notes: tuple[str, ...] = ()
    """Notes for the user, a sentence each."""
    head_notes: tuple[str, ...] = ()
    """The same about its head, for verbs that use it."""


@contextmanager
def open_network(
    model: ModelLike,
    *,
    file: FileSettings,
    threads: int | None,
    note: Note,
    preprocessing: Preprocessing | None = None,
    float32: bool = False,
    choice: EngineChoice = USUAL,
    batch: int | None = None,
) -> Iterator[tuple[Network, Ranks]]:
    """Open a network together with the ranks that compute with it, and leave a model in memory as it was.

    `float32` measures a model of another type in float32; a classifier and an engine compute as they do. `choice` is
    the engine, for `batch` images at once.
    """
    float32 = float32 and choice.precision is None
    if isinstance(model, str | os.PathLike) and is_exported(model):
        if preprocessing is not None:
            raise ConfigError("preprocessing is given, but an exported file has its own; leave it out.")
        with computing(threads, file.device, note) as ranks:
            yield _of_exported(model, file, choice), ranks
        return
    if isinstance(model, str | os.PathLike):
        with computing(threads, file.device, note) as ranks:
            contents = read(os.fspath(model), pickle=file.pickle, resident=True, **file.overrides)
            loaded = assemble(contents, device=ranks.device)
            network = _of_model(loaded.float() if float32 else loaded, preprocessing)
            network = _with_engine(network, choice, batch, note if ranks.first else unheard, owned=True)
            network = replace(network, name=os.fspath(model), digest=contents.digest)
            del contents, loaded  # an engine may have packed the weights, and needs them only so
            yield network, ranks
        return
    if isinstance(model, Classifier | Engine):
        if preprocessing is not None:
            raise ConfigError("preprocessing is given, but a classifier or engine has its own; leave it out.")
        if choice.given:
            raise ConfigError("a classifier or engine computes as it does; leave out `engine` and `precision`.")
        network = _of_classifier(model) if isinstance(model, Classifier) else Network(engine=model, name="the engine")
        with _in_memory(network.engine.device, file, threads, note) as ranks:
            yield network, ranks
        return
    with evaluating(model):
        same = not float32 or next(model.parameters()).dtype == torch.float32
        network = _of_model(model if same else copy.deepcopy(model).float(), preprocessing)
        with _in_memory(network.engine.device, file, threads, note) as ranks:
            yield _with_engine(network, choice, batch, note if ranks.first else unheard), ranks


def with_texts(network: Network, texts: TextEmbeddings | str | os.PathLike[str]) -> Network:
    """Return a network whose classes are texts; their embeddings may be an `.npz`."""
    if isinstance(texts, str | os.PathLike):
        texts = read_text_embeddings(texts)
    engine = zero_shot(network.engine, network.config, texts, network.name)
    return replace(network, engine=engine, info=replace(network.info, labels=texts.names), head_notes=())


@contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Put a model into evaluation mode for a while."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


@contextmanager
def _in_memory(device: torch.device, file: FileSettings, threads: int | None, note: Note) -> Iterator[Ranks]:
    file.check(device)
    with computing(threads, device, note) as ranks:
        yield ranks


def _of_exported(model: str | os.PathLike[str], file: FileSettings, choice: EngineChoice) -> Network:
    """Open a graph that was exported by us, or by another tool."""
    exported = open_exported(
        model, choice, threads=torch.get_num_threads(), architecture=file.for_graph(os.fspath(model))
    )
    engine, info = exported_engine(exported)
    return Network(engine=engine, name=os.fspath(model), info=info, digest=exported.digest, notes=info.notes)


def _with_engine(
    network: Network, choice: EngineChoice, batch: int | None, note: Note, *, owned: bool = False
) -> Network:
    """Let another engine run the model of a network."""
    if not choice.given or not isinstance(network.engine, TorchEngine):
        return network
    return replace(network, engine=make_engine(network.engine, choice, batch=batch, note=note, owned=owned))


def _of_classifier(classifier: Classifier) -> Network:
    return Network(
        engine=classifier.engine,
        name="the classifier",
        info=replace(classifier.info, labels=classifier.labels),
        notes=classifier.notes,
    )


def _of_model(model: Model, preprocessing: Preprocessing | None) -> Network:
    if preprocessing is None:
        engine, guessed = torch_engine(model)
    else:
        engine, guessed = TorchEngine(model, preprocessing), ()
    return Network(
        engine=engine,
        name="the model",
        info=model.info,
        config=model.config,
        notes=(*model.info.notes, *guessed),
        head_notes=head_notes(model),
    )
