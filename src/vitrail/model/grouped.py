"""Attention within groups of patches: axial (App. D.6), windows, and strided.

The groups are a table of patches (`groups.py`): patches are put in the order of the groups, attend within each by the
fused kernel, and are put back. The same attention over all tokens, with -inf where two patches share no group, gives
the map A; a test checks that both agree.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from vitrail.base.shapes import AttentionMap, KeptTokens, Keys, Queries, Tokens
from vitrail.model import kernels
from vitrail.model.attention import SelfAttention, attend_with_maps
from vitrail.model.config import ViTConfig
from vitrail.model.groups import Groups, axial_groups, stretch_groups, stride_groups, window_groups
from vitrail.model.merging import Merging
from vitrail.model.mixer_settings import AxialAttention, SparseAttention, WindowAttention
from vitrail.model.patches import Size
from vitrail.model.rotary import Rotation, rotate
from vitrail.model.trace import MapRecorder
from vitrail.model.units import Unit

Partition = Callable[[Size], Groups]


def partitions(config: ViTConfig, layer: int) -> list[Partition]:
    """Return how the patches of a grid are grouped in a block, for equal parts of the heads."""
    match config.mixer:
        case AxialAttention():
            return [lambda grid: axial_groups(grid, layer)]
        case WindowAttention(size=size):
            return [lambda grid: window_groups(grid, size, layer)]
        case SparseAttention(stride=stride):
            return [
                lambda grid: stretch_groups(grid, stride or grid[1]),
                lambda grid: stride_groups(grid, stride or grid[1]),
            ]
    raise AssertionError(config.mixer)


class Grouping(nn.Module):
    """One partition of a grid as fixed tables, which no file stores: members, their places, and which are there."""

    members: Tensor
    places: Tensor
    there: Tensor

    def __init__(self, partition: Partition, grid: Size) -> None:
        super().__init__()
        self.partition, self.grid = partition, grid
        for name, table in self.compute(grid).items():
            self.register_buffer(name, torch.empty(table.shape, dtype=table.dtype), persistent=False)
        groups = partition(grid)
        self.full = bool((groups >= 0).all())
        """Whether every group has all its members."""
        self.ordered = bool((groups.ravel() == np.arange(groups.size)).all())
        """Whether the groups follow each other in the order of the patches."""

    def compute(self, grid: Size) -> dict[str, Tensor]:
        """Compute the tables of a grid, which `init.py` fills this one's with."""
        groups = self.partition(grid)
        there = groups >= 0
        places = np.empty(grid[0] * grid[1], dtype=np.int64)
        places[groups[there]] = np.flatnonzero(there)
        with torch.device("cpu"):
            tables = {"members": groups.clip(0), "places": places, "there": there}
            return {name: torch.from_numpy(table) for name, table in tables.items()}

    def fitting(self, grid: Size) -> "Grouping":
        """Return the same partition for another grid."""
        if grid == self.grid:
            return self
        device = self.members.device
        other = Grouping(self.partition, grid).to(device)
        for name, table in self.compute(grid).items():
            other.get_buffer(name).copy_(table)
        return other

    def forward(self, queries: Queries, keys: Keys, values: Keys, *, dropout: float) -> Queries:
        """Let patches attend within their groups; groups stand beside heads, so that nothing is copied twice."""
        heads, shape = queries.shape[1], self.members.shape
        ours, theirs, read = (self.sort(part).unflatten(2, shape).flatten(1, 2) for part in (queries, keys, values))
        mixed = kernels.attend(ours, theirs, read, self.gaps(queries), dropout=dropout)
        mixed = mixed.unflatten(1, (heads, -1)).flatten(2, 3)
        return mixed if self.ordered else mixed.index_select(2, self.places)

    def gaps(self, queries: Queries) -> Float[Tensor, "batch group member other"] | None:
        """Return -inf for the members that are missing, and 0 elsewhere; None where all are there."""
        if self.full:
            return None
        gaps = queries.new_zeros(self.there.shape).masked_fill(~self.there, -torch.inf)
        return (
            gaps[None, :, None].repeat(1, queries.shape[1], 1, 1).expand(queries.shape[0], -1, self.there.shape[1], -1)
        )

    def sort(self, patches: Queries) -> Float[Tensor, "batch head member head_dim"]:
        """Put patches in the order of the groups."""
        return patches if self.ordered else patches.index_select(2, self.members.flatten())

    def together(self) -> Bool[Tensor, "patch patch"]:
        """Return which patches share a group."""
        group = self.places // self.members.shape[1]
        return group[:, None] == group


class GroupedAttention(SelfAttention):
    """Self-attention of patches within groups; tokens before them attend to all tokens."""

    def __init__(self, config: ViTConfig, layer: int) -> None:
        super().__init__(
            config.dim, config.num_heads, dropout=config.dropout, attention_dropout=config.attention_dropout
        )
        self.grid = config.grid
        groupings = [Grouping(partition, config.grid) for partition in partitions(config, layer)]
        self.groupings: Sequence[Grouping] = nn.ModuleList(groupings)  # type: ignore[assignment]

    def forward(
        self,
        tokens: Tokens,
        *,
        first_only: bool = False,
        maps: MapRecorder | None = None,
        rotation: Rotation | None = None,
        grid: Size | None = None,
        merging: Merging | None = None,  # noqa: ARG002 - refused with these mixers
    ) -> KeptTokens:
        """Mix the patches of a grid, by default the model's own; `maps` asks for A of some heads."""
        grid = grid or self.grid
        prefix = tokens.shape[1] - grid[0] * grid[1]
        if first_only and maps is None and prefix:  # a token before the patches attends to all
            return super().forward(tokens, first_only=True, rotation=rotation)
        queries, keys, values = self.project(tokens)
        if rotation is not None:
            queries, keys = rotate(queries, rotation), rotate(keys, rotation)
        if maps is None:
            mixed = self.attend(queries, keys, values, grid, prefix)
        else:
            bias = self.walls(queries, grid, prefix)
            mixed, weights = attend_with_maps(
                queries, keys, values, bias, heads=maps.heads, dropout=self.map_dropout, first_only=first_only
            )
            maps.take(weights)
        return self.dropout(self.out(mixed.transpose(1, 2).flatten(2)))

    def attend(self, queries: Queries, keys: Keys, values: Keys, grid: Size, prefix: int) -> Queries:
        """Compute A v of every token, A of patches only within their groups."""
        patches = [part[:, :, prefix:] for part in (queries, keys, values)]
        shares = zip(*(part.tensor_split(len(self.groupings), dim=1) for part in patches), strict=True)
        mixed = [
            grouping(*share, dropout=self.map_dropout)
            for grouping, share in zip(self.fitting(grid), shares, strict=True)
        ]
        joined = mixed[0] if len(mixed) == 1 else torch.cat(mixed, dim=1)
        if not prefix:
            return joined
        first = kernels.attend(queries[:, :, :prefix], keys, values, dropout=self.map_dropout)
        return torch.cat([first, joined], dim=2)

    def fitting(self, grid: Size) -> list[Grouping]:
        """Return the groupings of a grid."""
        return [grouping.fitting(grid) for grouping in self.groupings]

    def walls(self, queries: Queries, grid: Size, prefix: int) -> AttentionMap:
        """Return 0 where a token may attend to another, and -inf elsewhere."""
        heads, size = queries.shape[1], queries.shape[2]
        walls = queries.new_full((heads, size, size), -torch.inf)
        walls[:, :prefix] = 0
        for share, grouping in zip(walls.tensor_split(len(self.groupings)), self.fitting(grid), strict=True):
            share[:, prefix:, prefix:].masked_fill_(grouping.together(), 0)
        return walls.expand(queries.shape[0], -1, -1, -1)


def grouped_cost(config: ViTConfig, layer: int) -> Unit:
    """Count one layer of grouped attention; groups that are filled up count in full, as they are computed.

    Kept are the input and the output's input, q, k and v in the order of groups, what they mixed and a sum for each
    query; and q, k and v as they were, where tokens before the patches read them, or turned where they are rotary.
    """
    dim, heads, prefix = config.dim, config.num_heads, config.num_prefix
    wide, turned = config.num_tokens * dim, config.rotary is not None
    macs = 4 * wide * dim + 2 * prefix * wide
    activations = (5 * wide + prefix * heads + 2 * wide * turned) if prefix else 2 * wide
    for groups, share in _shares(config, layer):
        width, cells = dim * share // heads, groups.size
        macs += 2 * cells * groups.shape[1] * width
        activations += 3 * cells * width
        # torch's fused kernel has no dropout: A is kept before and after it, with its mask
        activations += 3 * cells * groups.shape[1] * share if config.attention_dropout else cells * (width + share)
    return Unit(macs=macs, activations=activations + (wide if config.dropout else 0))


def _shares(config: ViTConfig, layer: int) -> Sequence[tuple[Groups, int]]:
    """Return each partition of the model's grid with the number of heads that use it."""
    parts = partitions(config, layer)
    sizes = [len(part) for part in np.array_split(np.arange(config.num_heads), len(parts))]
    return [(partition(config.grid), size) for partition, size in zip(parts, sizes, strict=True)]
