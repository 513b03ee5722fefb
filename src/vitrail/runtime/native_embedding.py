"""The embedding of a model in our own program (`runtime/native`): Eq. 1 in one call, for inference in float32."""

import copy
import ctypes
import weakref
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.shapes import FeatureMap, KeptTokens, PositionTable
from vitrail.model.embedding import Embedding
from vitrail.model.patches import patch_grid
from vitrail.runtime.native_library import load_library
from vitrail.runtime.native_team import team, there


class NativeEmbedding(nn.Module):
    """z_0 = [x_class; x_p^1 E; ...; x_p^N E] + E_pos."""

    def __init__(self, embedding: Embedding) -> None:
        super().__init__()
        self.library, self.plain = load_library(), copy.deepcopy(embedding)
        layer, (height, width) = embedding.projection, embedding.patch_size
        weight, bias = (part.detach().float().contiguous() for part in (layer.weight, layer.bias))
        columns, inner = layer.weight.shape
        shape = (columns, inner // (height * width), height, width)
        self.handle = ctypes.c_void_p(there(self.library.vitrail_embedding(weight.data_ptr(), bias.data_ptr(), *shape)))
        weakref.finalize(self, self.library.vitrail_embedding_free, self.handle)

    @property
    def projection(self) -> nn.Linear:
        """E, as torch has it."""
        return self.plain.projection

    def forward(self, features: FeatureMap, **further: Any) -> KeptTokens:
        """Embed all patches; where some are left out or exchanged, torch does."""
        plain = self.plain
        if further.get("kept") is not None or further.get("corruption") is not None:
            return plain(features, **further)
        rows, columns = grid = patch_grid((features.shape[2], features.shape[3]), plain.patch_size)
        table = None if plain.positions is None else plain.table(grid, None).contiguous()
        first = self.first(table)
        tokens = features.new_empty(len(features), len(first) + rows * columns, first.shape[1])
        tokens[:, : len(first)] = first
        if len(features):
            self._embed(features, (rows, columns), table, tokens[:, len(first) :])
        return tokens if plain.norm is None else plain.norm(tokens)

    def first(self, table: PositionTable | None) -> Float[Tensor, "first dim"]:
        """Return the tokens before the patches: that of the class, which has a position, and those without one."""
        plain, token = self.plain, self.plain.class_token
        if token is None:
            return plain.insert(plain.projection.weight.new_empty(1, 0, len(plain.projection.weight)))[0]
        return plain.insert((token if table is None else token + table[:1])[None])[0]

    def _embed(
        self, features: FeatureMap, grid: tuple[int, int], table: PositionTable | None, tokens: KeptTokens
    ) -> None:
        strides = (ctypes.c_long * 4)(*features.stride())
        positions = None if table is None else table[-grid[0] * grid[1] :].data_ptr()
        there(
            self.library.vitrail_embed(
                self.handle,
                features.data_ptr(),
                strides,
                len(features),
                *grid,
                positions,
                tokens.data_ptr(),
                tokens.stride(0),
                team(),
            )
        )
