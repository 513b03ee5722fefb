"""What runs a network: pixels in, logits or features out.

Everything that measures or predicts asks an `Engine`, and does not know what computes. `TorchEngine` runs a model of
ours; anything else with the same members can be evaluated and can predict.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from vitrail.base.alone import each_alone, may_share
from vitrail.base.errors import ConfigError
from vitrail.base.ranks import check_device
from vitrail.base.settings import to_dict
from vitrail.base.shapes import Images, Logits, PixelBatch, Representation
from vitrail.checkpoint.files import weights_digest
from vitrail.data.preprocessing import Preprocessing, preset
from vitrail.data.transforms import normalise
from vitrail.model.contract import Model
from vitrail.model.merging import check_merging
from vitrail.model.patches import size_text

FEWEST_IMAGES = 4
"""Images of a share below which its products are too small."""


@runtime_checkable
class Engine(Protocol):
    """A network that takes batches of pixels from 0 to 255, and normalises them itself."""

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes the network's input: its size and channels, and the mean and std of the engine."""

    @property
    def num_outputs(self) -> int:
        """How many classes there are; 0 where there is only a representation."""

    @property
    def feature_width(self) -> int:
        """How many numbers a representation has."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers that it computes with."""

    @property
    def digest(self) -> str:
        """What names the network: with the same digest, the same pixels give the same numbers."""

    @property
    def concurrent(self) -> bool:
        """Whether several threads may call it at once, each with its share of torch's threads."""

    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the score of every class, on any device and of any type."""

    def features(self, pixels: PixelBatch) -> Representation:
        """Return the representation, which is the input of the last linear layer."""


@dataclass(frozen=True, eq=False)
class TorchEngine:
    """A model, put into evaluation mode, that computes where its weights are and in their type."""

    model: Model
    """The network."""
    preprocessing: Preprocessing
    """How an image becomes its input."""
    _: KW_ONLY
    compiled_batch: int | None = None
    """How many images torch.compile sees at once: others are split or padded, for another size would compile again.
    None does not compile. The compiler takes the weights as constants, and packs them for its products."""
    merge_tokens: int = 0
    """How many tokens each block merges into others."""

    def __post_init__(self) -> None:
        """Refuse a model on a device that cannot compute, or whose tokens cannot be merged; leave training mode."""
        check_device(self.device)
        check_merging(self.model.config, self.merge_tokens)
        self.model.eval()

    @property
    def kind(self) -> str:
        """The name of the engine."""
        return "torch" if self.compiled_batch is None else "compiled"

    @property
    def precision(self) -> str:
        """The numbers that it computes with."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def num_outputs(self) -> int:
        """How many classes there are."""
        return self.model.config.num_classes

    @property
    def feature_width(self) -> int:
        """How many numbers a representation has."""
        return self.model.config.feature_width

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return next(self.model.parameters()).dtype

    @property
    def digest(self) -> str:
        """SHA-256 of the weights as they are now, and of the model's settings."""
        settings = json.dumps(to_dict(self.model.config), sort_keys=True)
        merged = f" {self.merge_tokens} tokens merged" if self.merge_tokens else ""
        return hashlib.sha256(f"{weights_digest(self.model)} {settings}{merged}".encode()).hexdigest()

    @property
    def concurrent(self) -> bool:
        """Whether threads may share the work: on a CPU, and not with torch.compile, which they would all enter."""
        return self.device.type == "cpu" and self.compiled_batch is None

    @torch.inference_mode()
    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the score of every class."""
        return self._in_batches(self._network if self.compiled_batch is None else self._compiled, pixels)

    @torch.inference_mode()
    def features(self, pixels: PixelBatch) -> Representation:
        """Return the input of the last linear layer."""
        features = self._network.features if self.compiled_batch is None else self._compiled_features
        return self._in_batches(features, pixels)

    def _in_batches(self, network: Callable[[Images], Tensor], pixels: PixelBatch) -> Tensor:
        """Call the network, with as many images at once as it was compiled for."""
        size = self.compiled_batch
        if size is None:
            return self._in_shares(network, pixels)
        parts = pixels.split(size)
        return torch.cat([network(self.inputs(_padded(part, size)))[: len(part)] for part in parts])

    def _in_shares(self, network: Callable[[Images], Tensor], pixels: PixelBatch) -> Tensor:
        """Call the network: for a large batch on a CPU with few cores, each core takes its share of the images."""
        threads = torch.get_num_threads()
        if self.device.type != "cpu" or not may_share(threads) or len(pixels) < FEWEST_IMAGES * threads:
            return network(self.inputs(pixels))
        parts = pixels.tensor_split(threads)
        return torch.cat(each_alone(threads, [partial(self._part, network, part) for part in parts]))

    @torch.inference_mode()
    def _part(self, network: Callable[[Images], Tensor], pixels: PixelBatch) -> Tensor:
        return network(self.inputs(pixels))

    def inputs(self, pixels: PixelBatch) -> Images:
        """Return what the model itself takes."""
        return normalise(pixels.to(self.device), self.preprocessing).to(self.dtype)

    @cached_property
    def _network(self) -> Any:
        return self.model if not self.merge_tokens else Merged(self.model, self.merge_tokens)

    @cached_property
    def _compiled(self) -> Callable[[Images], Tensor]:
        return frozen(self._network)

    @cached_property
    def _compiled_features(self) -> Callable[[Images], Tensor]:
        return frozen(self._network.features)


class Merged(nn.Module):
    """A model that merges tokens in each block."""

    def __init__(self, model: Model, merge_tokens: int) -> None:
        super().__init__()
        check_merging(model.config, merge_tokens)
        self.model: Any = model
        self.merge_tokens = merge_tokens

    def forward(self, images: Images) -> Tensor:
        """Return the score of every class."""
        return self.model(images, merge_tokens=self.merge_tokens)

    def features(self, images: Images) -> Tensor:
        """Return the input of the last linear layer."""
        return self.model.features(images, merge_tokens=self.merge_tokens)


def frozen(network: Callable[[Images], Tensor]) -> Callable[[Images], Tensor]:
    """Compile a network with its weights as constants, packed for its products, for one size of its input.

    Compiling happens at the first call, which finds the setting; as an option of torch.compile it has no effect there.
    """
    import torch._inductor.config as inductor  # the compiler takes as long to import as torch

    compiled = torch.compile(network, dynamic=False)  # one size, also beside another engine's

    def call(images: Images) -> Tensor:
        with inductor.patch(freezing=True):
            return compiled(images)

    return call


def torch_engine(model: Model) -> tuple[TorchEngine, tuple[str, ...]]:
    """Return the engine of a model with its own preprocessing.

    Where the model has none, it is that of the reference release, with a note; for a model of another library
    that would be a guess, which is refused.
    """
    if model.info.preprocessing is None and model.info.doubt is not None:
        raise ConfigError(model.info.doubt)
    if model.info.preprocessing is not None:
        return TorchEngine(model, model.info.preprocessing), ()
    config = model.config
    note = (
        "the model does not state how images become its input; as in the reference release, they are brought to "
        f"{size_text(config.image_size)} and to the range from -1 to 1."
    )
    guess = preset("google", image_size=config.image_size, channels=config.channels)
    return TorchEngine(model, guess), (note,)


def _padded(pixels: PixelBatch, size: int) -> UInt8[Tensor, "size channel height width"]:
    """Repeat the last image until there are as many as needed."""
    missing = size - len(pixels)
    return pixels if not missing else torch.cat([pixels, pixels[-1:].expand(missing, -1, -1, -1)])
