"""What mmpretrain, and mmcls before it, state beside their weights: the settings of the run, as text of a Python file.

The text is parsed and never run: constants, lists and calls of `dict` are read, and everything else is left out.
"""

import ast
from collections.abc import Mapping
from typing import Any

from vitrail.base.errors import CheckpointError

VERSIONS = ("mmpretrain_version", "mmcls_version", "mmengine_version")
"""Which of them a file has depends on the age of the program."""
_LONGEST = 1_000_000
_POOLS = {"cls_token": "token", "avg_featmap": "avg"}
_ACTIVATIONS = {"GELU": "gelu", "QuickGELU": "quick_gelu"}
_HEADS = {
    **dict.fromkeys(("s", "small"), 8),
    **dict.fromkeys(("b", "base", "deit-b", "deit-base", "mocov3-s", "mocov3-small"), 12),
    **dict.fromkeys(("l", "large", "h", "huge", "eva-g", "eva-giant"), 16),
    **dict.fromkeys(("deit-t", "deit-tiny"), 3),
    **dict.fromkeys(("deit-s", "deit-small", "dinov2-s", "dinov2-small"), 6),
    **dict.fromkeys(("dinov2-g", "dinov2-giant"), 24),
}
_DEIT3_HEADS = {**dict.fromkeys(("s", "small"), 6), **dict.fromkeys(("m", "medium"), 8)}


def is_run(data: Mapping[Any, Any]) -> bool:
    """Return whether a file was saved by a program of mmengine, or by mmcls before that."""
    meta = data.get("meta")
    return isinstance(meta, dict) and any(version in meta for version in VERSIONS)


def read_run(meta: Mapping[Any, Any], origin: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what would stand in timm's `config.json`, and fields of our config."""
    text = meta.get("cfg") or meta.get("config")
    run = parse(text) if isinstance(text, str) else {}
    model = _table(run, "model")
    backbone = _table(model, "backbone")
    settings: dict[str, Any] = {"label_names": _labels(meta)}
    if backbone:
        settings["model_args"] = _arguments(backbone, _table(model, "neck"), _table(model, "head"), origin)
    pixels = _pixels(run, model)
    if pixels:
        settings["pretrained_cfg"] = pixels
    norm = _table(backbone, "norm_cfg")
    epsilon = norm.get("eps", 1e-5) if norm else 1e-6
    return settings, {"norm_eps": epsilon} if isinstance(epsilon, float) else {}


def parse(text: str) -> dict[str, Any]:
    """Return the plain values that a Python file assigns to names."""
    if len(text) > _LONGEST:
        return {}
    try:
        statements = ast.parse(text).body
        return {
            statement.targets[0].id: _value(statement.value)
            for statement in statements
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {key.value: _value(value) for key, value in pairs if isinstance(key, ast.Constant)}
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            return {keyword.arg: _value(keyword.value) for keyword in keywords if keyword.arg}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def _table(settings: Mapping[Any, Any], name: str) -> dict[Any, Any]:
    value = settings.get(name)
    return value if isinstance(value, dict) else {}


def _list(settings: Mapping[Any, Any], name: str) -> list[Any]:
    value = settings.get(name)
    return value if isinstance(value, list) else []


def _arguments(backbone: dict[Any, Any], neck: dict[Any, Any], head: dict[Any, Any], origin: str) -> dict[str, Any]:
    """Return the arguments that timm's constructor would have."""
    layers = backbone.get("layer_cfgs")
    layers = layers[0] if isinstance(layers, list) and layers else layers
    activation = _table(layers if isinstance(layers, dict) else {}, "act_cfg").get("type", "GELU")
    output = backbone.get("out_type", "cls_token")
    pooled = "GlobalAveragePooling" in str(neck.get("type"))
    arguments = {
        "img_size": backbone.get("img_size", 224),
        "act_layer": _ACTIVATIONS.get(str(activation).rpartition(".")[2], str(activation)),
        "global_pool": "avg" if output == "featmap" and pooled else _POOLS.get(str(output)),
        "num_heads": _heads(backbone),
    }
    strange = [
        *(f"patches with {name}" for name in _table(backbone, "patch_cfg") if name != "bias"),
        *(f"norms of the kind {kind}" for kind in [_table(backbone, "norm_cfg").get("type", "LN")] if kind != "LN"),
        *(f"a head with {kind}" for kind in [_table(head, "act_cfg").get("type", "Tanh")] if kind != "Tanh"),
    ]
    if strange:
        raise CheckpointError(f"{origin} is a model of mmpretrain that has {', '.join(strange)}, which is not read.")
    return {name: value for name, value in arguments.items() if value is not None}


def _heads(backbone: dict[Any, Any]) -> int | None:
    """Return the number of heads of an architecture that is named or written out."""
    architecture = backbone.get("arch", "base")
    if isinstance(architecture, dict):
        heads = architecture.get("num_heads")
        return heads if type(heads) is int and heads > 0 else None
    table = _HEADS | _DEIT3_HEADS if str(backbone.get("type")).endswith("DeiT3") else _HEADS
    return table.get(str(architecture).lower())


def _labels(meta: Mapping[Any, Any]) -> list[Any] | None:
    """Return the names of the classes that the run was trained on."""
    names = _table(meta, "dataset_meta").get("classes") or meta.get("CLASSES")
    return list(names) if isinstance(names, list | tuple) else None


def _pixels(run: dict[str, Any], model: dict[Any, Any]) -> dict[str, Any] | None:
    """Return how the run prepared the images that it was tested with, as `pretrained_cfg` of timm would state it.

    Only what Pillow resizes is read: OpenCV, which is the program's usual way, computes other pixels.
    """
    colours = _table(run, "data_preprocessor") or _table(model, "data_preprocessor")
    steps = _list(run, "test_pipeline")
    by_type = {str(step.get("type")).rpartition(".")[2]: step for step in steps if isinstance(step, dict)}
    resized, cropped = by_type.get("ResizeEdge", {}), by_type.get("CenterCrop", {})
    edge, side = resized.get("scale"), cropped.get("crop_size")
    known = {"LoadImageFromFile", "ResizeEdge", "CenterCrop", "PackInputs"}
    plain = set(by_type) <= known and resized.get("backend") == "pillow" and resized.get("edge", "short") == "short"
    if not plain or not colours.get("to_rgb") or type(edge) is not int or type(side) is not int or side > edge:
        return None
    mean, std = (
        [value / 255 for value in _list(colours, name) if isinstance(value, int | float)] for name in ("mean", "std")
    )
    if (len(mean), len(std)) != (3, 3):
        return None
    return {
        "mean": mean,
        "std": std,
        "crop_pct": side / edge,
        "interpolation": resized.get("interpolation", "bilinear"),
    }
