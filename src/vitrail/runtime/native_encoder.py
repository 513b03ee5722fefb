"""The blocks of a model in our own program (`runtime/native`), and models whose parts run there."""

import copy
import ctypes
import weakref
from typing import Any

import torch
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.memory import give_back
from vitrail.base.shapes import KeptTokens, Tokens
from vitrail.model.contract import Model
from vitrail.runtime.native_embedding import NativeEmbedding
from vitrail.runtime.native_library import load_library
from vitrail.runtime.native_team import team, there

GELUS = {"tanh": 0, "erf": 1, "quick": 2}
"""The numbers that the program has for them."""


def check_native(model: Model) -> None:
    """Refuse a model with other blocks than the paper's."""
    if names := model.unusual_blocks():
        raise ConfigError(
            f"`engine=native` runs the blocks of the paper, but the model has {' and '.join(names)}; choose another "
            "engine."
        )


class NativeEncoder(nn.Module):
    """The blocks in one call, for inference; the norm after them is torch's."""

    def __init__(self, encoder: Any, config: Any, *, int8: bool, owned: bool = False) -> None:
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
        self.handle = ctypes.c_void_p(there(made))
        weakref.finalize(self, self.library.vitrail_free, self.handle)
        for layer, block in enumerate(encoder.blocks):
            weights = packed_weights(block)
            there(self.library.vitrail_pack(self.handle, layer, *(weight.data_ptr() for weight in weights)))
            if owned:
                empty(block)

    def forward(self, tokens: Tokens, *, first_only: bool = False, **_: Any) -> KeptTokens:
        """Encode the sequence, or its first token; what else an encoder takes is for models that are refused here."""
        sequence = tokens.clone(memory_format=torch.contiguous_format)
        images, length = sequence.shape[:2]
        there(self.library.vitrail_run(self.handle, sequence.data_ptr(), images, length, team(), int(first_only)))
        sequence = sequence[:, :1] if first_only else sequence
        return sequence if self.norm is None else self.norm(sequence)


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


def native_model(model: Model, *, int8: bool, owned: bool = False) -> Model:
    """Return a copy of a model whose embedding and encoder are native; it needs nothing of the memory of the other.

    The blocks of a model that is `owned` are emptied one by one, so that no weight is in memory twice.
    """
    check_native(model)
    return model.with_engine(
        embedding=lambda embedding: NativeEmbedding(embedding).eval(),
        encoder=lambda encoder: NativeEncoder(encoder, model.config, int8=int8, owned=owned).eval(),
    )


def empty(block: nn.Module) -> None:
    """Return the memory of a block whose weights are packed; it has none left, and fails where it is used."""
    for weight in block.parameters():
        if weight.is_contiguous():
            give_back(weight.data_ptr(), weight.nbytes)
        weight.data = weight.new_empty(0)
