"""Google's `.npz` files: the release's two dialects, big_vision's, and what they look like wrapped or scanned.

| dialect | blocks                                        | positions                             | here          |
|---------|-----------------------------------------------|---------------------------------------|---------------|
| G1      | LayerNorm_0, ..Attention_1, LayerNorm_2, ..   | posembed_input, with a class entry    | google        |
| G2      | LayerNorm_0, ..Attention_0, LayerNorm_1, ..   | the same                              | google-linen  |
| G3      | as G2, under `params/` or `params/img/`       | `pos_embedding`, without one          | big-vision    |
| G4      | one stack with a leading axis for depth       | as G3                                 | read only     |
| G5      | any of them under `opt/target/`               |                                       | read only     |
"""

import functools
import re
from pathlib import Path

from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.files import atomic_write
from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.archive import write_archive
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities
from vitrail.checkpoint.formats.fold import fold_class_entry
from vitrail.checkpoint.formats.format import Format, Weights
from vitrail.checkpoint.formats.google_names import MODERN, OLD, BlockNames, layout
from vitrail.checkpoint.infer import Hints, count_blocks, tell_grid, tell_stages
from vitrail.checkpoint.layout import Layout, read_layout, write_layout
from vitrail.data.preprocessing import preset
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import Pool, ViTConfig

MOST_LAYERS = 1000
# Width, patch and positions of models whose images have pixels that fill no patch: SigLIP's So400m/14 at 384 pixels.
_PUBLISHED_SIZES = {(1152, 14, 729): [(384, 384)]}
_STACK = "Transformer/encoderblock/"
_POSITIONS = ("Transformer/posembed_input/pos_embedding", "pos_embedding", "Transformer/pos_embedding")


def recognises(names: set[str]) -> bool:
    """Return whether a file is one of Google's Vision Transformers."""
    return any(name.endswith("embedding/kernel") or "Transformer/encoderblock" in name for name in names)


def read(weights: Weights) -> Contents:
    """Read any of the dialects."""
    source, prefix, notes = _unwrap(weights.source)
    scanned = any(name.startswith(_STACK) for name in source)
    source = _squeeze_norms(_unstack(source) if scanned else source)
    names = OLD if any("MultiHeadDotProductAttention_1/" in name for name in source) else MODERN
    source = _collect_pool(source)
    big_vision = prefix.endswith(("params/", "img/")) or any(name in source for name in _POSITIONS[1:])
    config, class_entry = _infer(source, names, weights.hints, big_vision=big_vision)
    position_name = next((name for name in _POSITIONS if name in source), _POSITIONS[0])
    table = layout(config, names, position_name=position_name, class_entry=class_entry)
    tensors = read_layout(table, source, config, "the Google Vision Transformer that its tensors describe")
    if scanned:  # one stack after the other, so that each is unpacked once
        order = sorted(tensors, key=lambda name: re.sub(r"blocks\.\d+", "blocks", name))
        tensors = tensors.renamed({name: name for name in order})
    if config.positions == "sincos-2d" and "image_size" not in weights.hints:
        notes += ("the file has fixed positions and does not state for which images; 224x224 was assumed.",)
    dialect = "big-vision" if big_vision else "google" if names is OLD else "google-linen"
    return Contents(
        format=dialect,
        config=config,
        tensors=tensors,
        preprocessing=preset("google", image_size=config.image_size, channels=config.channels),
        notes=notes,
    )


def write_release(contents: Contents, path: Path, names: BlockNames) -> Contents:
    """Write the release's layout, with its old names or with linen's."""
    config = contents.config
    assert isinstance(config, ViTConfig)  # noqa: S101 - the format holds no others
    table = layout(config, names, position_name=_POSITIONS[0], class_entry=bool(config.class_token))
    return _write(contents, path, table)


def write_big_vision(contents: Contents, path: Path) -> Contents:
    """Write big_vision's layout, in which the class token has no position."""
    config = contents.config
    assert isinstance(config, ViTConfig)  # noqa: S101 - the format holds no others
    table = layout(config, MODERN, prefix="params/", position_name="pos_embedding", class_entry=False)
    return _write(fold_class_entry(contents), path, table)


def _write(contents: Contents, path: Path, table: Layout) -> Contents:
    with atomic_write(path) as file:
        write_archive(file, write_layout(table, contents.tensors))
    return contents


def _unwrap(source: TensorSource) -> tuple[TensorSource, str, tuple[str, ...]]:
    """Strip the prefix of training states and two-tower models, and note what was left out."""
    prefix = ""
    for part in ("opt/target/", "params/", "img/"):
        below = {name for name in source if name.startswith(prefix + part)}
        if part == "img/" and not recognises({name.removeprefix(prefix + part) for name in below}):
            continue
        prefix += part if below else ""
    inside = source.below(prefix) if prefix else source
    aside = sorted({"/".join(name.split("/")[:2]) for name in source if not name.startswith(prefix)})
    notes = (f"only {prefix} was read; the file also holds {', '.join(aside)}.",) if aside else ()
    return inside, prefix, notes


def _unstack(source: TensorSource) -> TensorSource:
    """Give each layer of a scanned encoder tensors of its own."""
    stacked = [name for name in source if name.startswith(_STACK)]
    depths = {(source.specs[name].shape or (0,))[0] for name in stacked}
    if len(depths) != 1 or max(depths) > MOST_LAYERS:
        raise CheckpointError(
            f"{source.origin} is a scanned model whose tensors do not agree on a number of layers, of at most "
            f"{MOST_LAYERS}: {', '.join(map(str, sorted(depths)))}."
        )
    places = {
        f"Transformer/encoderblock_{layer}/{name.removeprefix(_STACK)}": (name, layer)
        for name in stacked
        for layer in range(next(iter(depths)))
    }
    specs = {name: spec for name, spec in source.specs.items() if not name.startswith(_STACK)}
    specs |= {new: Spec(source.specs[old].shape[1:], source.specs[old].dtype) for new, (old, _) in places.items()}
    whole = functools.lru_cache(maxsize=3)(source.fetch)  # q, k and v of all layers at a time

    def fetch(name: str) -> Tensor:
        if name not in places:
            return source[name]
        old, layer = places[name]
        return whole(old)[layer]

    return TensorSource(origin=source.origin, specs=specs, fetch=fetch)


def _squeeze_norms(source: TensorSource) -> TensorSource:
    """Flatten the group norms of old files, which are 1x1x1xC."""
    long = {name for name, spec in source.specs.items() if "gn" in name and spec.shape[:-1] == (1, 1, 1)}
    specs = {name: Spec(spec.shape[-1:], spec.dtype) if name in long else spec for name, spec in source.specs.items()}
    return TensorSource(
        origin=source.origin,
        specs=specs,
        fetch=lambda name: source[name].flatten() if name in long else source[name],
    )


def _collect_pool(source: TensorSource) -> TensorSource:
    """Put the pool of early big_vision models, whose parts lie at the top, where later ones have it."""
    if "probe" not in source:
        return source
    parts = ("probe", "MlpBlock_0/", "MultiHeadDotProductAttention_0/", "LayerNorm_0/")
    return source.renamed({f"MAPHead_0/{name}" if name.startswith(parts) else name: name for name in source})


def _infer(source: TensorSource, names: BlockNames, hints: Hints, *, big_vision: bool) -> tuple[ViTConfig, bool]:
    """Infer every size from the tensors, and whether the class token has a position."""
    height, width, inputs, dim = source.shape("embedding/kernel", 4)
    block = "Transformer/encoderblock_0"
    _, heads, _ = source.shape(f"{block}/{names.attention}/query/kernel", 3)
    backbone, channels = _infer_backbone(source, inputs)
    stride = backbone.stride if backbone else 1
    cell = (height * stride, width * stride)
    class_token = "cls" in source
    pool: Pool = "attention" if "MAPHead_0/probe" in source else "class-token" if class_token else "mean"
    table = next((source.shape(name, 3) for name in _POSITIONS if name in source), None)
    class_entry = class_token
    if table is not None:
        sizes = _PUBLISHED_SIZES.get((dim, height, table[1]), ())
        grid = tell_grid(table[1], cell, extras=(class_token, 0, 1), hints=hints, origin=source.origin, sizes=sizes)
        image_size, class_entry, trim = grid.image_size, bool(grid.extra), grid.trim
    else:
        image_size, trim = hints.get("image_size", (224, 224)), False
    config = ViTConfig(
        dim=dim,
        depth=count_blocks(source, r"Transformer/encoderblock_(\d+)/"),
        num_heads=heads,
        mlp_dim=source.shape(f"{block}/{names.mlp}/Dense_0/kernel", 2)[1],
        patch_size=(height, width),
        image_size=image_size,
        channels=channels,
        num_classes=source.shape("head/kernel", 2)[1] if "head/kernel" in source else 0,
        backbone=backbone,
        pool=pool,
        class_token=class_token,
        representation_size=source.shape("pre_logits/kernel", 2)[1] if "pre_logits/kernel" in source else None,
        positions="learned-1d" if table is not None else "sincos-2d" if big_vision else "none",
        position_resize="google",
        trim=trim,
        gelu="tanh",
        norm_eps=1e-6,
    )
    return config, class_entry


def _infer_backbone(source: TensorSource, inputs: int) -> tuple[BackboneConfig | None, int]:
    if "conv_root/kernel" not in source:
        return None, inputs
    _, _, channels, width = source.shape("conv_root/kernel", 4)
    blocks = tell_stages(source, r"block(\d+)/unit(\d+)/")
    return BackboneConfig(blocks=blocks, width=width), channels


_NUMERICS = {"gelu": "tanh", "norm_eps": 1e-6}
_RELEASE = Abilities(
    library="Google's release",
    hybrid=True,
    pools=("class-token", "mean"),
    representation=True,
    positions=("learned-1d", "none"),
    numerics=_NUMERICS,
    backbone_numerics={
        "norm_groups": 32,
        "norm_eps": 1e-6,
        "standardisation": "std-plus-eps",
        "standardisation_eps": 1e-5,
    },
)
RELEASE = Format(
    name="google",
    suffixes=(".npz",),
    abilities=_RELEASE,
    recognises=recognises,
    read=read,
    write=functools.partial(write_release, names=OLD),
)
LINEN = Format(
    name="google-linen",
    suffixes=(".npz",),
    abilities=_RELEASE,
    write=functools.partial(write_release, names=MODERN),
)
BIG_VISION = Format(
    name="big-vision",
    suffixes=(".npz",),
    abilities=Abilities(
        library="big_vision",
        pools=("class-token", "mean", "attention"),
        representation=True,
        positions=("learned-1d", "sincos-2d"),
        numerics=_NUMERICS,
    ),
    write=write_big_vision,
)
