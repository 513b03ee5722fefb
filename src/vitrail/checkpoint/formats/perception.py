"""Perception Encoder as Meta publishes it (`PE-Core-B16-224.pt` and so on): read only.

Its image tower has the names of CLIP's, with two parts that CLIP does not have: rotary positions, which no tensor
shows, and in PE-Core an attention pool. PE-Lang and PE-Spatial have neither the pool nor a last norm; their features
are those of all tokens, of which the mean is taken.
"""

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.formats.openclip import SCALE, image_tower, layout
from vitrail.checkpoint.formats.timm_facts import row_order
from vitrail.checkpoint.infer import Hints, count_blocks, tell_grid
from vitrail.checkpoint.layout import BATCHED, Entry, Layout, named, permuted, read_layout, rows
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.config import ViTConfig
from vitrail.model.rotary import RotaryConfig

_HEADS = {192: 3, 384: 6, 768: 12, 1024: 16, 1536: 16}
_POOL_HEADS = 8
_TURNED = {"interleaved": True, "columns_first": True}


def recognises(names: set[str]) -> bool:
    """Return whether a state dict is an image tower with CLIP's names that has an attention pool, or no last norm."""
    return any(
        {f"{start}conv1.weight", f"{start}transformer.resblocks.0.ln_1.weight"} <= names
        and (f"{start}attn_pool.probe" in names or f"{start}ln_post.weight" not in names)
        for start in ("visual.", "")
    )


def read(weights: Weights) -> Contents:
    """Read the image tower."""
    source, notes = image_tower(weights.source)
    config = _infer(source, weights.hints)
    table = _layout(config)
    tensors = read_layout(table, source, config, "the Perception Encoder that it describes")
    pixels = Preprocessing(image_size=config.image_size, antialias=True)  # squashed, bilinear, 0.5 and 0.5
    return Contents(format="openclip", config=config, tensors=tensors, preprocessing=pixels, notes=notes)


def _infer(source: TensorSource, hints: Hints) -> ViTConfig:
    dim, channels, height, width = source.shape("conv1.weight", 4)
    class_token, core = "class_embedding" in source, "attn_pool.probe" in source
    count = source.shape("positional_embedding", 2)[0]
    grid = tell_grid(count, (height, width), extras=(int(class_token),), hints=hints, origin=source.origin)
    heads = hints.get("num_heads") or _HEADS.get(dim)
    if heads is None:
        raise CheckpointError(
            f"{source.origin} does not state how many attention heads it has, and no published Perception Encoder is "
            f"{dim} wide; give num_heads."
        )
    mlp_dim = source.shape("transformer.resblocks.0.mlp.c_fc.weight", 2)[0]
    if core and source.shape("attn_pool.mlp.c_fc.weight", 2)[0] != mlp_dim:
        raise CheckpointError(
            f"{source.origin} is a Perception Encoder whose attention pool has an MLP of another width than its blocks "
            "(PE-Core-G14), which no model here has; the smaller ones are read."
        )
    return ViTConfig(
        dim=dim,
        depth=count_blocks(source, r"transformer\.resblocks\.(\d+)\."),
        num_heads=heads,
        mlp_dim=mlp_dim,
        patch_size=(height, width),
        image_size=grid.image_size,
        trim=grid.trim,
        channels=channels,
        num_classes=0,
        class_token=class_token,
        pool="attention" if core else "mean",
        pool_prefix=True if class_token else None,
        pool_heads=_POOL_HEADS if core else None,
        norm_embedded="ln_pre.weight" in source,
        norm_encoded="ln_post.weight" in source,
        projection_size=source.shape("proj", 2)[1] if "proj" in source else None,
        position_resize="timm-npz",
        rotary=RotaryConfig(base=10000.0, coordinates="cells", offset=float(class_token)),
        layer_scale=0.1 if SCALE in source else None,
        gelu="erf",
        norm_eps=1e-5,
    )


def _layout(config: ViTConfig) -> Layout:
    """List every tensor: CLIP's, with rows of queries and keys in our order, and the pool's."""
    order = row_order(_TURNED, config.dim, config.num_heads)
    assert order is not None  # noqa: S101 - pairs of neighbours are never our order
    table = [
        entry._replace(codec=permuted(entry.codec, order)) if ".attention.qkv." in entry.ours else entry
        for entry in layout(config)
    ]
    if config.pool != "attention":
        return table
    dim, stack = config.dim, "attn_pool.attn.in_proj_"
    table.append(Entry("head.pool.probe", ("attn_pool.probe",), BATCHED))
    for part in ("weight", "bias"):
        table.append(Entry(f"head.pool.query.{part}", (f"{stack}{part}",), rows(0, dim)))
        table.append(Entry(f"head.pool.key_value.{part}", (f"{stack}{part}",), rows(dim, 3 * dim)))
    return [
        *table,
        *named("head.pool.out", "attn_pool.attn.out_proj"),
        *named("head.pool.norm", "attn_pool.layernorm"),
        *named("head.pool.mlp.hidden", "attn_pool.mlp.c_fc"),
        *named("head.pool.mlp.out", "attn_pool.mlp.c_proj"),
    ]


FORMAT = Format(
    name="openclip",
    suffixes=(),
    abilities=Abilities(library="Perception Encoder"),
    recognises=recognises,
    read=read,
    write=None,
)
