"""The Vision Transformer: image -> patches -> tokens -> encoder -> head -> logits (Fig. 1)."""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, nn

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import Images, KeptPatches, KeptTokens, Kernel, Logits, Pooled, PoolWeights, Representation
from vitrail.model.anatomy import Branch, Positions, block_branches, unit_branches
from vitrail.model.config import ViTConfig
from vitrail.model.contract import Layer, Model
from vitrail.model.corruption import Corruption
from vitrail.model.embedding import ALL_PATCHES, Embedding, PatchChoice, embedding_cost
from vitrail.model.encoder import Encoder, encoder_costs
from vitrail.model.head import Head, head_cost
from vitrail.model.hybrid import Backbone, backbone_costs
from vitrail.model.image_checks import check_images
from vitrail.model.merging import Merging, TokenSizes, check_merging
from vitrail.model.mixer_settings import FullAttention
from vitrail.model.patches import patch_grid, trimmed
from vitrail.model.rotary import Rotary
from vitrail.model.trace import Encoded, Recorder, Reduce, ReduceUnits, Selection, Trace, select
from vitrail.model.units import Unit


class ViT(Model, config=ViTConfig):
    """A Vision Transformer, or a hybrid when its config has a backbone."""

    config: ViTConfig
    head_prefix = "head.linear."

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.backbone = Backbone(config.backbone, config.channels) if config.backbone else None
        self.embedding = Embedding(config)
        self.rotary = None
        if config.rotary is not None:
            self.rotary = Rotary(config.rotary, config.dim // config.num_heads, config.grid)
        self.encoder = Encoder(config)
        self.head = Head(config)

    @property
    def last_linear(self) -> nn.Linear | None:
        """The linear layer that gives logits."""
        return self.head.linear

    @property
    def recompute(self) -> bool:
        """Whether training keeps only the input of each block."""
        return self.encoder.recompute

    @recompute.setter
    def recompute(self, value: bool) -> None:
        self.encoder.recompute = value

    def layers(self) -> list[Layer]:
        """Return the embedding with what comes before it, each block, and the head with the last norm."""
        blocks = [
            Layer(name=f"block {number}", prefixes=(f"encoder.blocks.{number}.",), block=block)
            for number, block in enumerate(self.encoder.blocks)
        ]
        first = Layer(name="embedding", prefixes=("backbone.", "embedding.", "encoder.positions."))
        return [first, *blocks, Layer(name="head", prefixes=("encoder.norm.", "head."))]

    def matrices(self) -> dict[str, int]:
        """Name the kernels of the blocks; q, k and v are three in one."""
        stacked = {f"attention.{name}": parts for name, parts in self.config.mixer.matrices.items()}
        stacked |= {"mlp.hidden.weight": 1, "mlp.out.weight": 1}
        blocks = range(self.config.depth)
        stacked |= {"mlp.gate.weight": 1} if self.config.mlp == "swiglu" else {}
        return {f"encoder.blocks.{number}.{name}": parts for number in blocks for name, parts in stacked.items()}

    def unusual_blocks(self) -> tuple[str, ...]:
        """Name other mixers and MLPs than the paper's, and positions that blocks know of."""
        config = self.config
        unusual = {
            f"the mixer {config.mixer.kind}": config.mixer != FullAttention(),
            "relative positions": config.positions == "relative",
            "rotary positions": config.rotary is not None,
            "positions at every layer": config.position_placement != "input",
            f"the MLP {config.mlp}": config.mlp != "gelu",
        }
        return tuple(name for name, there in unusual.items() if there)

    def with_engine(self, embedding: Callable[[Any], nn.Module], encoder: Callable[[nn.Module], nn.Module]) -> "ViT":
        """Return a copy with another embedding and another encoder."""
        parts = {id(self.embedding): embedding(self.embedding), id(self.encoder): encoder(self.encoder)}
        return copy.deepcopy(self, parts)

    def constants(self) -> dict[str, float]:
        """Name the factors of LayerScale."""
        value, blocks = self.config.layer_scale, range(self.config.depth)
        scales = [f"encoder.blocks.{number}.scale{branch}" for number in blocks for branch in (1, 2)]
        return {} if value is None else dict.fromkeys(scales, value)

    def filters(self) -> Kernel:
        """Return E as filters of a patch, or the kernels of a hybrid's root as it uses them."""
        if self.backbone is not None:
            return self.backbone.root.conv.kernel.detach()
        return self.embedding.projection.weight.detach().unflatten(1, (self.config.channels, *self.config.patch_size))

    def positions(self) -> Positions:
        """Return the tables that are added, at the input or in blocks, those of rotary positions, and relative ones."""
        patches = math.prod(self.config.grid)
        added = {} if self.embedding.positions is None else {"input": self.embedding.positions()}
        shared = len(self.encoder.positions) == 1
        for layer in range(len(self.encoder.positions)):
            added["every block" if shared else f"block {layer}"] = self.encoder.position(layer)
        if self.rotary is not None:
            added["rotary"] = torch.cat([*self.rotary.table], dim=1)
        blocks = range(self.config.depth if self.config.positions == "relative" else 0)
        relative = [self.get_parameter(f"encoder.blocks.{number}.attention.offsets") for number in blocks]
        return Positions(
            tables={name: table[-patches:].detach() for name, table in added.items()},
            offsets={f"block {number}": table.detach() for number, table in enumerate(relative)},
        )

    def branches(self) -> list[Branch]:
        """Name the units of a hybrid's ResNet, and the branches and heads of each block."""
        config, backbone = self.config, self.config.backbone
        units = [] if backbone is None else unit_branches(backbone.blocks, "backbone.", ("norm3.weight", "norm3.bias"))
        heads, head_dim = config.attention_shape[1], config.dim // config.num_heads
        blocks = [
            block_branches(layer, heads=heads, head_dim=head_dim, mixer=config.mixer.last)
            for layer in range(config.depth)
        ]
        return [*units, *(branch for branches in blocks for branch in branches)]

    def units(self) -> list[Unit]:
        """Count the embedding, each block, the head, and the parts of a hybrid's ResNet."""
        config, backbone = self.config, self.config.backbone
        hybrid = [] if backbone is None else backbone_costs(backbone, config.channels, config.image_size)
        return [embedding_cost(config), *encoder_costs(config), head_cost(config), *hybrid]

    def encode(
        self,
        images: Images,
        *,
        kept: KeptPatches | None = None,
        drop_patches: float = 0.0,
        generator: Generator | None = None,
        corruption: Corruption | None = None,
        any_size: bool = False,
        layers: Selection = None,
        attention: Selection = None,
        heads: Selection = "all",
        reduce: Reduce | None = None,
        units: ReduceUnits | None = None,
        pooled_only: bool = False,
        merge_tokens: int = 0,
    ) -> Encoded:
        """Map images to tokens; each block merges `merge_tokens` of them into others."""
        recorder = Recorder(
            layers=select(layers, self.config.depth + 1, "layers"),
            attention=self.select_maps(attention),
            heads=select(heads, self.config.num_heads, "heads"),
            reduce=reduce,
            units=units,
        )
        patches = PatchChoice(kept=kept, drop=drop_patches, generator=generator, corruption=corruption)
        check_merging(self.config, merge_tokens)
        merging = Merging(merge_tokens, self.config.num_prefix) if merge_tokens else None
        return self.run(images, recorder, patches=patches, any_size=any_size, pooled_only=pooled_only, merging=merging)

    def select_maps(self, attention: Selection) -> list[int]:
        """Return the blocks of which A is selected; a mixer without attention has none."""
        if attention is not None and not self.config.mixer.has_maps:
            raise ConfigError(
                f"a model with the mixer {self.config.mixer.kind!r} has no attention maps; leave attention out."
            )
        return select(attention, self.config.depth, "blocks")

    def run(
        self,
        images: Images,
        recorder: Recorder,
        *,
        patches: PatchChoice = ALL_PATCHES,
        any_size: bool = False,
        pooled_only: bool = False,
        merging: Merging | None = None,
    ) -> Encoded:
        """Map images to tokens (Fig. 1), and record the selected intermediates."""
        config = self.config
        check_images(images, config.channels, None if any_size else config.image_size)
        if patches.some or any_size:
            config.check_patches(drop=float(patches.some), sizes=[(images.shape[2], images.shape[3])])
        images = images.to(self.embedding.projection.weight.dtype)
        images = trimmed(images, config.patch_size) if config.trim and self.backbone is None else images
        features = images if self.backbone is None else self.backbone(images, recorder=recorder)
        kept = patches.choose(features, config.patch_size)
        tokens = self.embedding(features, kept=kept, corruption=patches.corruption, recorder=recorder)
        first_only = pooled_only and config.pool == "class-token" and config.depth not in recorder.numbers
        grid = patch_grid((features.shape[2], features.shape[3]), config.patch_size)
        rotation = None if self.rotary is None else self.rotary(grid, kept)
        tokens = self.encoder(
            tokens, first_only=first_only, recorder=recorder, rotation=rotation, grid=grid, merging=merging
        )
        return Encoded(
            output=tokens,
            kept=kept,
            layers=recorder.layers,
            attention=recorder.attention,
            units=recorder.units,
            feature_map=None if self.backbone is None else features,
            sizes=None if merging is None else merging.sizes,
        )

    def represent(self, encoded: KeptTokens, sizes: TokenSizes | None = None) -> Representation:
        """Pool the tokens, and apply the tanh layer where there is one."""
        return self.head.represent(encoded, sizes)

    def features(
        self, images: Images, *, drop_patches: float = 0.0, any_size: bool = False, merge_tokens: int = 0
    ) -> Representation:
        """Compute the representation that the last linear layer sees."""
        encoded = self.encode(
            images, drop_patches=drop_patches, any_size=any_size, pooled_only=True, merge_tokens=merge_tokens
        )
        return self.represent(encoded.output, encoded.sizes)

    def poolings(self, encoded: KeptTokens) -> dict[str, Pooled]:
        """Return the class token, where there is one, and the mean over patches."""
        mean = {"mean of patches": encoded[:, self.config.num_prefix :].mean(dim=1)}
        return {"class token": encoded[:, 0]} | mean if self.config.class_token else mean

    def pool_weights(self, encoded: KeptTokens) -> PoolWeights:
        """Return the share of each token in what is pooled; of attention pooling, the mean over its heads."""
        return self.head.pool_weights(encoded)

    def forward(
        self, images: Images, *, drop_patches: float = 0.0, any_size: bool = False, merge_tokens: int = 0
    ) -> Logits:
        """Map images to logits: the encoder, then the head."""
        encoded = self.encode(
            images, drop_patches=drop_patches, any_size=any_size, pooled_only=True, merge_tokens=merge_tokens
        )
        return self.head(encoded.output, encoded.sizes)

    def trace(self, images: Images, *, attention: Selection = None, heads: Selection = "all") -> Trace:
        """Run one pass and return every named intermediate; attention maps only of the chosen blocks and heads."""
        depth = self.config.depth
        recorder = Recorder(
            layers=range(depth + 1),
            attention=self.select_maps(attention),
            heads=select(heads, self.config.num_heads, "heads"),
            by_name=True,
        )
        encoded = self.run(images, recorder).output
        representation = self.represent(encoded)
        return Trace(
            patches=recorder.named.pop("patches"),
            feature_maps=recorder.named,
            embedded=recorder.layers[0],
            blocks=tuple(recorder.layers[number] for number in range(1, depth + 1)),
            attention=recorder.attention,
            encoded=encoded,
            representation=representation,
            logits=self.classify(representation),
        )
