"""Write src/vitrail/checkpoint/formats/timm_models.json: what the tensors of timm's Vision Transformers do not show.

Run it in the environment that benchmarks/peers.sh makes, after a change of timm's version:

    python benchmarks/timm_table.py

Every architecture of timm's classes VisionTransformer, VisionTransformerDistilled and Eva is built at depth 1 without
its weights, and one line is written for it:

- parts: what its tensors show of its structure, as `vitrail.checkpoint.formats.timm_parts` reads them from a file;
- heads, gelu, norm_eps, pool, prefix (whether pooling sees the tokens before the patches), pool_heads, rotary;
- differs: why it is another model although its tensors look like one that is read;
- tags: for every published file, mean and std, interpolation, crop fraction, crop mode and input size.
"""

import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import importlib
import inspect
import json
from functools import partial
from pathlib import Path
from typing import Any

import timm
import torch
from timm.models import get_pretrained_cfg
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.vision_transformer import ResPostBlock, VisionTransformer

from vitrail.checkpoint.formats.timm_parts import parts_of

TARGET = Path(__file__).parents[1] / "src" / "vitrail" / "checkpoint" / "formats" / "timm_models.json"
MODULES = ("deit", "eva", "vision_transformer", "vision_transformer_hybrid")
GELU = {"gelu": "erf", "gelu_tanh": "tanh", "quick_gelu": "quick", None: "erf"}
MEANS = {(0.5, 0.5, 0.5): "half", (0.485, 0.456, 0.406): "imagenet", (0.48145466, 0.4578275, 0.40821073): "clip"}


class Recorded(Exception):  # noqa: N818 - no error
    pass


def arguments_of(name: str) -> tuple[type, dict[str, Any]]:
    """Return the class of an architecture and every argument of its constructor."""

    def stop(cls: type, *_: Any, **settings: Any) -> None:
        raise Recorded(cls, settings)

    module = importlib.import_module(timm.model_entrypoint(name).__module__)
    original, module.build_model_with_cfg = module.build_model_with_cfg, stop
    try:
        timm.create_model(name)
    except Recorded as recorded:
        cls, arguments = recorded.args
    finally:
        module.build_model_with_cfg = original
    constructor = VisionTransformer if issubclass(cls, VisionTransformer) else cls
    defaults = {key: value.default for key, value in inspect.signature(constructor).parameters.items()}
    return cls, defaults | {key: value for key, value in arguments.items() if key in defaults}


def eps_of(norm_layer: Any) -> float:
    return norm_layer.keywords["eps"] if isinstance(norm_layer, partial) else 1e-6


def rotary_of(arguments: dict[str, Any]) -> dict[str, Any] | None:
    if not arguments.get("use_rot_pos_emb"):
        return None
    if arguments["rope_type"] == "dinov3":
        rotary = {"base": float(arguments["rope_temperature"]), "coordinates": "centred"}
    else:
        rotary = {"base": float(arguments["rope_temperature"]), "coordinates": "cells"}
        rotary |= {"reference": arguments["ref_feat_shape"], "offset": arguments["rope_grid_offset"]}
    return rotary | {
        "columns_first": arguments["rope_grid_indexing"] == "xy" and arguments["rope_type"] != "dinov3",
        "interleaved": not arguments["rope_rotate_half"],
    }


def differs(arguments: dict[str, Any]) -> str | None:
    """Say why a model computes something else although no tensor shows it."""
    if arguments.get("block_fn") is ResPostBlock or arguments.get("use_post_norm"):
        return "a LayerNorm after each branch and not before it"
    return None


def tags_of(name: str) -> dict[str, list[Any]]:
    tags = {}
    for full in [*timm.list_pretrained(f"{name}.*"), name]:
        config = get_pretrained_cfg(full, allow_unregistered=False)
        if config is not None:
            mean = MEANS.get(tuple(config.mean), [list(config.mean), list(config.std)])
            row = [mean, config.interpolation, config.crop_pct, config.crop_mode, list(config.input_size[1:])]
            tags[full.partition(".")[2]] = row
    return tags


def row_of(name: str) -> dict[str, Any] | None:
    cls, arguments = arguments_of(name)
    if cls not in (VisionTransformer, VisionTransformerDistilled, Eva):
        return None
    eva = cls is Eva
    with torch.device("meta"):
        model = timm.create_model(name, depth=1) if not arguments.get("num_kv_heads") else None
    if model is None:  # each block has its own number of key heads: tensors show it, and it is refused
        return None
    act = arguments.get("act_layer")
    act = act.__name__.lower() if isinstance(act, type) else act
    row = {
        "parts": parts_of({key: tuple(value.shape) for key, value in model.state_dict().items()}),
        "depth": arguments["depth"],
        "heads": arguments["num_heads"],
        "gelu": GELU.get(act),
        "norm_eps": eps_of(arguments["norm_layer"]),
        "pool": arguments["global_pool"],
        "prefix": arguments["global_pool"] == "map" if eva else arguments["pool_include_prefix"],
        "pool_heads": arguments.get("attn_pool_num_heads"),
        "rotary": rotary_of(arguments),
        "differs": differs(arguments),
    }
    return {key: value for key, value in row.items() if value not in (None, False)} | {"tags": tags_of(name)}


if __name__ == "__main__":
    names = sorted({name for module in MODULES for name in timm.list_models(module=module)})
    rows = {name: row for name in names if (row := row_of(name)) is not None}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    TARGET.write_text(f'{{"timm": "{timm.__version__}", "models": {{\n{lines}\n}}}}\n')
    print(f"{TARGET}: {len(rows)} architectures, {TARGET.stat().st_size / 1024:.0f} KiB")
