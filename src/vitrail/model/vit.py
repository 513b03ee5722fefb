"""The Vision Transformer: image -> patches -> tokens -> encoder -> head -> logits (Fig. 1)."""

from torch import nn

from vitrail.base.errors import InputError
from vitrail.base.shapes import Images, Representation
from vitrail.model.config import ViTConfig
from vitrail.model.contract import Layer, Model
from vitrail.model.embedding import Embedding
from vitrail.model.encoder import Encoder
from vitrail.model.head import Head
from vitrail.model.hybrid import Backbone
from vitrail.model.patches import Size, size_text
from vitrail.model.trace import Selection, Trace, select


class ViT(Model, config=ViTConfig):
    """A Vision Transformer, or a hybrid when its config has a backbone."""

    config: ViTConfig
    head_prefix = "head.linear."

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.backbone = Backbone(config.backbone, config.channels) if config.backbone else None
        self.embedding = Embedding(config)
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
        stacked = {"attention.qkv.weight": 3, "attention.out.weight": 1, "mlp.hidden.weight": 1, "mlp.out.weight": 1}
        blocks = range(self.config.depth)
        return {f"encoder.blocks.{number}.{name}": parts for number in blocks for name, parts in stacked.items()}

    def features(self, images: Images, *, drop_patches: float = 0.0, any_size: bool = False) -> Representation:
        """Compute the representation that the last linear layer sees."""
        check_images(images, self.config.channels, None if any_size else self.config.image_size)
        if drop_patches or any_size:
            self.config.check_patches(drop=drop_patches, sizes=[(images.shape[2], images.shape[3])])
        features = images if self.backbone is None else self.backbone(images)
        embedded = self.embedding(features, drop=drop_patches)
        return self.head.represent(self.encoder(embedded, first_only=self.config.pool == "class-token"))

    def trace(self, images: Images, *, attention: Selection = None, heads: Selection = "all") -> Trace:
        """Run one pass and return every named intermediate; attention maps only of the asked blocks and heads."""
        check_images(images, self.config.channels, self.config.image_size)
        asked_blocks = select(attention, self.config.depth, "blocks")
        asked_heads = select(heads, self.config.num_heads, "heads")
        feature_maps = {} if self.backbone is None else self.backbone.trace(images)
        patches = self.embedding.project(list(feature_maps.values())[-1] if feature_maps else images)
        tokens = embedded = self.embedding.assemble(patches)
        blocks, maps = [], {}
        for layer, block in enumerate(self.encoder.blocks):
            tokens = self.encoder.place(tokens, layer)
            if layer in asked_blocks:
                maps[layer] = block.attention.map(block.norm1(tokens), asked_heads)  # type: ignore[operator,union-attr]
            tokens = block(tokens)
            blocks.append(tokens)
        encoded = self.encoder.finish(tokens)
        representation = self.head.represent(encoded)
        return Trace(
            feature_maps=feature_maps,
            patches=patches,
            embedded=embedded,
            blocks=tuple(blocks),
            attention={layer: maps[layer] for layer in asked_blocks},
            encoded=encoded,
            representation=representation,
            logits=self.classify(representation),
        )


def check_images(images: Images, channels: int, image_size: Size | None) -> None:
    """Refuse images that do not fit the model; without `image_size` any size goes."""
    if images.ndim != 4:
        raise InputError(
            f"images have the shape {tuple(images.shape)}, but the model needs (batch, {channels}, height, width); "
            "for one image add a batch axis with images[None]."
        )
    if not images.is_floating_point():
        raise InputError(
            f"images are {images.dtype}, but the model needs floating point in its own pixel range; "
            "convert 8-bit pixels with images.float() / 127.5 - 1 for a range of [-1, 1]."
        )
    if images.shape[1] != channels:
        raise InputError(
            f"images of the shape {tuple(images.shape)} have {images.shape[1]} channels, but {channels} are needed; "
            f"pass (batch, {channels}, height, width), or create the model with channels={images.shape[1]}."
        )
    given = (images.shape[2], images.shape[3])
    if image_size is not None and given != image_size:
        raise InputError(
            f"images are {size_text(given)}, but the model was made for {size_text(image_size)}; "
            f"resize the images or create the model with image_size={given}."
        )
