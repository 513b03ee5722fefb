"""Checkpoints of training: which of the tables in a torch file are the weights, and what lies beside them.

A program that trains saves its model beside an optimiser, its arguments and often an average of the weights. The
average is taken, as timm does: it is what was evaluated. What the arguments state about the model is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint import mmpretrain
from vitrail.checkpoint.plain import Opaque, Stored
from vitrail.data.preprocessing import PresetName

AVERAGES = ("state_dict_ema", "model_ema", "ema_state_dict", "ema", "teacher", "target_encoder")
"""Names of averaged weights, the one that is taken first."""
_RAW = ("state_dict", "model", "model_state_dict", "model_state", "net", "network", "params", "module", "student")
_OTHERS = frozenset(
    {
        *("optimizer", "optim", "opt", "optimizer_states", "optimizer_state_dict", "lr_schedulers", "scheduler"),
        *("lr_scheduler", "scaler", "amp", "amp_scaler", "loss_scaler", "fp16_scaler", "dino_loss", "ibot_loss"),
        *("args", "hyper_parameters", "callbacks", "loops", "meta", "config", "cfg", "message_hub", "param_schedulers"),
    }
)
"""Tables that are not weights."""
PATCH_KERNELS = (
    "patch_embed.proj.weight",
    "patch_embed.projection.weight",
    "conv_proj.weight",
    "patch_embeddings.projection.weight",
    "patch_embedding.weight",
    "patch_embeddings.weight",
    "conv1.weight",
)
"""The tensor that every Vision Transformer has, by the end of its name."""
_HEADS = {192: 3, 384: 6, 768: 12, 1024: 16, 1280: 16, 1408: 16}
"""Of I-JEPA's models by width."""
_DEPTH, _TABLES = 4, 1000


@dataclass(frozen=True, kw_only=True)
class Training:
    """Weights, and what the program that saved them states about them."""

    source: TensorSource
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    """What would stand in timm's `config.json`."""
    hints: dict[str, Any] = field(default_factory=dict)
    """Fields of our config that the program decides."""
    preset: PresetName | None = None
    """How the program prepared images, where it is known."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The table of weights in a file."""

    tensors: dict[str, Any]
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, Any] = field(default_factory=dict)
    preset: PresetName | None = None

    def training(self, source: TensorSource) -> Training:
        """Return the same with the tensors as they are read."""
        return Training(source=source, notes=self.notes, settings=self.settings, hints=self.hints, preset=self.preset)


def choose(data: Any, origin: str) -> Chosen:
    """Find the weights: a table with the tensors of a Vision Transformer, an average before others."""
    tables = list(_tables(data)) if isinstance(data, dict) else []
    if not tables:
        raise CheckpointError(f"{origin} holds a {_kind(data)} without tensors by name, so no weights.")
    models = [table for table in tables if any(str(name).endswith(PATCH_KERNELS) for name in table[1])]
    averages = _averages(data)
    ranked = sorted(models or tables, key=lambda candidate: _rank(candidate, averages))
    path, table = ranked[0]
    tensors = {str(name): value for name, value in table.items() if isinstance(value, Stored) or _is_tensor(value)}
    notes = []
    raw = next((other for other, _ in ranked[1:] if not set(other) & set(averages)), None)
    if models and set(path) & set(averages) and raw is not None:
        notes.append(
            f"the average of the weights ({'.'.join(path)}) was taken, not the weights themselves "
            f"({'.'.join(raw) or 'of the file'})."
        )
    program, preset, hints = _program(data)
    if program == "I-JEPA" and (heads := _HEADS.get(_width(tensors))):
        hints["num_heads"] = heads
    if program and models:
        notes.append(f"the file is a checkpoint of training by {program}; what is not the model was left aside.")
    settings = _settings(data)
    if program == "mmpretrain":
        settings, hints = mmpretrain.read_run(data["meta"], origin)
    return Chosen(tensors=tensors, notes=tuple(notes), settings=settings, hints=hints, preset=preset)


def _averages(data: Any) -> tuple[str, ...]:
    """Return the names of averaged weights, the one that is taken first.

    mmengine and Lightning put the average where the weights are searched for, and the weights elsewhere.
    """
    swapped = (mmpretrain.is_run(data) and "ema_state_dict" in data) or "current_model_state" in data
    return ("state_dict",) if swapped else AVERAGES


def _tables(data: dict[Any, Any]) -> Iterator[tuple[tuple[str, ...], dict[Any, Any]]]:
    """Walk over the tables that hold tensors, with the names that lead to each; few, and not deep."""
    queue: list[tuple[tuple[str, ...], dict[Any, Any]]] = [((), data)]
    seen = {id(data)}
    for path, table in queue:
        if any(isinstance(value, Stored) for value in table.values()):
            yield path, table
        for name, value in table.items() if len(path) < _DEPTH else ():
            if isinstance(value, dict) and id(value) not in seen and name not in _OTHERS and len(queue) < _TABLES:
                seen.add(id(value))
                queue.append(((*path, str(name)), value))


def _rank(candidate: tuple[tuple[str, ...], dict[Any, Any]], averages: tuple[str, ...]) -> tuple[int, int]:
    path, table = candidate
    places = [
        order.index(name) + start for order, start in ((averages, 0), (_RAW, 10)) for name in path if name in order
    ]
    return min(places, default=20), -len(table)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Opaque) and value.kind.endswith(("tensor", "is not stored"))


def _kind(data: Any) -> str:
    if isinstance(data, Stored):
        return "tensor"
    return "dict" if isinstance(data, dict) else type(data).__name__


def _program(data: dict[Any, Any]) -> tuple[str | None, PresetName | None, dict[str, Any]]:
    """Return the program that saved a file, how it prepares images, and what it decides of the model."""
    arguments, plain = _arguments(data), {"position_resize": "huggingface"}
    if "student" in data and "teacher" in data:
        return "DINO or iBOT", "imagenet", {"position_resize": "dino"}
    if "target_encoder" in data:
        return "I-JEPA", "imagenet", plain | {"gelu": "erf", "norm_eps": 1e-6, "pool": "mean"}
    if "mask_ratio" in arguments or str(arguments.get("model", "")).startswith("mae_"):
        return "MAE", "imagenet", plain
    if isinstance(arguments.get("global_pool"), bool) and "nb_classes" in arguments:
        return "MAE", "imagenet", plain
    if "distillation_type" in arguments:
        return "DeiT", "imagenet", plain
    if "pytorch-lightning_version" in data:
        return "Lightning", None, {}
    if mmpretrain.is_run(data):
        return "mmpretrain", None, {}
    if isinstance(data.get("arch"), str) and "gp" in arguments:
        return "timm", None, {}
    return None, None, {}


def _width(tensors: dict[str, Any]) -> int:
    """Return the width of a model by its patch kernel; 0 where there is none."""
    kernels = [value for name, value in tensors.items() if name.endswith(PATCH_KERNELS) and isinstance(value, Stored)]
    return kernels[0].shape[0] if kernels and kernels[0].shape else 0


def _arguments(data: dict[Any, Any]) -> dict[Any, Any]:
    arguments = data.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _settings(data: dict[Any, Any]) -> dict[str, Any]:
    """Return what the arguments of timm's programs state about the model, as its `config.json` would."""
    arguments = _arguments(data)
    name = data.get("arch") or arguments.get("model")
    if not isinstance(name, str):
        return {}
    settings: dict[str, Any] = {"architecture": name}
    if isinstance(arguments.get("gp"), str):
        settings["global_pool"] = arguments["gp"]
    elif isinstance(arguments.get("global_pool"), bool):  # of MAE's fine-tuning
        settings["global_pool"] = "avg" if arguments["global_pool"] else "token"
    if isinstance(kwargs := arguments.get("model_kwargs"), dict):
        settings["model_args"] = {str(key): value for key, value in kwargs.items()}
    pixels = {key: arguments.get(key) for key in ("mean", "std", "crop_pct", "interpolation")}
    if pixels["mean"] is not None:
        settings["pretrained_cfg"] = {key: value for key, value in pixels.items() if value is not None}
    return settings
