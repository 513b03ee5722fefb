"""torchvision's Vision Transformers: a state dict with a class token, a fused qkv and ImageNet's pixels."""

from pathlib import Path

from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.folder import write_state
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.formats.torchvision_pixels import tell_pixels
from vitrail.checkpoint.infer import count_blocks, tell_grid, tell_heads
from vitrail.checkpoint.layout import BATCHED, Entry, Layout, named, patches_oihw, read_layout, write_layout
from vitrail.model.config import ViTConfig

_MLP = ("mlp.0", "mlp.3")
_OLD_MLP = ("mlp.linear_1", "mlp.linear_2")


def recognises(names: set[str]) -> bool:
    """Return whether a state dict is a Vision Transformer of torchvision."""
    return "conv_proj.weight" in names and any(name.startswith("encoder.layers.encoder_layer_0.") for name in names)


def read(weights: Weights) -> Contents:
    """Read a state dict, with the names of today or of the first release."""
    source, hints = weights.source, weights.hints
    mlp = _OLD_MLP if "encoder.layers.encoder_layer_0.mlp.linear_1.weight" in source else _MLP
    dim, channels, height, width = source.shape("conv_proj.weight", 4)
    count = source.shape("encoder.pos_embedding", 3)[1]
    image_size = tell_grid(count, (height, width), extras=(1,), hints=hints, origin=source.origin).image_size
    depth = count_blocks(source, r"encoder\.layers\.encoder_layer_(\d+)\.")
    mlp_dim = source.shape(f"encoder.layers.encoder_layer_0.{mlp[0]}.weight", 2)[0]
    heads, notes = tell_heads(dim, depth, mlp_dim, hints, source.origin)
    representation = "heads.pre_logits.weight"
    config = ViTConfig(
        dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_dim=mlp_dim,
        patch_size=(height, width),
        image_size=image_size,
        channels=channels,
        num_classes=source.shape("heads.head.weight", 2)[0] if "heads.head.weight" in source else 0,
        representation_size=source.shape(representation, 2)[0] if representation in source else None,
        position_resize="torchvision",
        gelu="erf",
        norm_eps=1e-6,
    )
    tensors = read_layout(layout(config, mlp), source, config, "the torchvision model that its tensors describe")
    pixels, doubt = tell_pixels(config, hints, source.origin)
    return Contents(
        format="torchvision", config=config, tensors=tensors, preprocessing=pixels, doubt=doubt, notes=notes
    )


def write(contents: Contents, path: Path) -> Contents:
    """Write a state dict for `VisionTransformer.load_state_dict`."""
    assert isinstance(contents.config, ViTConfig)  # noqa: S101 - the format holds no others
    write_state(write_layout(layout(contents.config, _MLP), contents.tensors), path, contents)
    return contents


def layout(config: ViTConfig, mlp: tuple[str, str]) -> Layout:
    """List every tensor."""
    table = [
        Entry("embedding.projection.weight", ("conv_proj.weight",), patches_oihw(config.patch_size)),
        Entry("embedding.projection.bias", ("conv_proj.bias",)),
        Entry("embedding.class_token", ("class_token",), BATCHED),
        Entry("embedding.positions.table", ("encoder.pos_embedding",), BATCHED),
        *named("encoder.norm", "encoder.ln"),
        *named("head.representation", "heads.pre_logits"),
        *named("head.linear", "heads.head"),
    ]
    for layer in range(config.depth):
        ours, theirs = f"encoder.blocks.{layer}", f"encoder.layers.encoder_layer_{layer}"
        table += named(f"{ours}.norm1", f"{theirs}.ln_1")
        table += [
            Entry(f"{ours}.attention.qkv.{part}", (f"{theirs}.self_attention.in_proj_{part}",))
            for part in ("weight", "bias")
        ]
        table += named(f"{ours}.attention.out", f"{theirs}.self_attention.out_proj")
        table += named(f"{ours}.norm2", f"{theirs}.ln_2")
        table += named(f"{ours}.mlp.hidden", f"{theirs}.{mlp[0]}") + named(f"{ours}.mlp.out", f"{theirs}.{mlp[1]}")
    return table


FORMAT = Format(
    name="torchvision",
    suffixes=(".safetensors",),
    abilities=Abilities(
        library="torchvision",
        representation=True,
        headless=False,
        rectangles=False,
        channels=(3,),
        numerics={"gelu": "erf", "norm_eps": 1e-6},
    ),
    recognises=recognises,
    read=read,
    write=write,
)
