"""Parts of a model that run in our own program (`runtime/native`): the blocks, and E; and the models that have them."""

import copy
import ctypes
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.base.shapes import KeptTokens, Tokens
from vitrail.model.contract import Model
from vitrail.runtime.native_library import load_library

GELUS = {"tanh": 0, "erf": 1, "quick": 2}
"""The numbers that the program has for them."""


def check_native(model: Model) -> None:
    """Refuse a model with other blocks than the paper's."""
    if names := model.unusual_blocks():
        raise ConfigError(
            f"`engine=native` runs the blocks of the paper, but the model has {' and '.join(names)}; choose another "
            "engine."
        )


_team = threading.local()


@contextmanager
def team_of(threads: int) -> Iterator[None]:
    """Let encoders that are called in this thread have a team of threads, whatever torch has."""
    _team.threads = threads
    try:
        yield
    finally:
        del _team.threads


def _threads() -> int:
    """Return how many threads an encoder has that is called in this thread."""
    return getattr(_team, "threads", torch.get_num_threads())


class NativeEncoder(nn.Module):
    """The blocks in one call, for inference; the norm after them is torch's."""

    def __init__(self, encoder: Any, config: Any, *, int8: bool) -> None:
        super().__init__()
        self.library = load_library()
        if int8 and not self.library.vitrail_int8():
            raise ConfigError(
                "this processor has no instructions for products of bytes (VNNI), without which `engine=native` has "
                "no int8; choose float32, or another engine."
            )
        self.norm = copy.deepcopy(encoder.norm)
        gelu = GELUS[config.gelu]
        made = self.library.vitrail_make(
            config.dim, config.depth, config.num_heads, config.mlp_dim, config.norm_eps, gelu, int(int8)
        )
        self.handle = ctypes.c_void_p(_there(made))
        weakref.finalize(self, self.library.vitrail_free, self.handle)
        for layer, block in enumerate(encoder.blocks):
            weights = packed_weights(block)
            _there(self.library.vitrail_pack(self.handle, layer, *(weight.data_ptr() for weight in weights)))

    def forward(self, tokens: Tokens, *, first_only: bool = False, **_: Any) -> KeptTokens:
        """Encode the sequence, or its first token; what else an encoder takes is for models that are refused here."""
        sequence = tokens.clone(memory_format=torch.contiguous_format)
        images, length = sequence.shape[:2]
        _there(self.library.vitrail_run(self.handle, sequence.data_ptr(), images, length, _threads(), int(first_only)))
        sequence = sequence[:, :1] if first_only else sequence
        return sequence if self.norm is None else self.norm(sequence)


class NativeLinear(nn.Module):
    """A linear layer for inference, in float32."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.library, self.weight = load_library(), copy.deepcopy(linear.weight)
        columns, inner = linear.weight.shape
        weight, bias = (part.detach().float().contiguous() for part in (linear.weight, linear.bias))
        made = self.library.vitrail_linear(weight.data_ptr(), bias.data_ptr(), columns, inner)
        self.handle = ctypes.c_void_p(_there(made))
        weakref.finalize(self, self.library.vitrail_linear_free, self.handle)

    def forward(self, rows: Float[Tensor, "*rows inner"]) -> Float[Tensor, "*rows columns"]:
        """Multiply each row."""
        rows = rows.contiguous()
        out = rows.new_empty(*rows.shape[:-1], len(self.weight))
        count = rows.numel() // rows.shape[-1]
        _there(self.library.vitrail_linear_run(self.handle, rows.data_ptr(), count, out.data_ptr(), _threads()))
        return out


def packed_weights(block: Any) -> list[Tensor]:
    """Return the weights of a block as the program takes them: float32, with LayerScale in the layers before it."""
    layers: list[Any] = [
        block.norm1,
        block.attention.qkv,
        block.attention.out,
        block.norm2,
        block.mlp.hidden,
        block.mlp.out,
    ]
    weights = {id(layer): [layer.weight.detach(), layer.bias.detach()] for layer in layers}
    for layer, scale in ((block.attention.out, block.scale1), (block.mlp.out, block.scale2)):
        if scale is not None:
            weight, bias = weights[id(layer)]
            weights[id(layer)] = [weight * scale.detach()[:, None], bias * scale.detach()]
    return [weight.float().contiguous() for layer in layers for weight in weights[id(layer)]]


def native_model(model: Model, *, int8: bool) -> Model:
    """Return a copy of a model whose encoder and E are native; it needs nothing of the memory of the other."""
    check_native(model)
    return model.with_engine(
        encoder=lambda encoder: NativeEncoder(encoder, model.config, int8=int8).eval(),
        projection=NativeLinear,
    )


def _there(result: int | None) -> int:
    """Return the result of a call, or raise if the program had no memory."""
    if not result:
        raise CheckpointError("there is not enough memory for the engine native; use smaller batches or another model.")
    return result
