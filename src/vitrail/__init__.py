"""Vitrail: the Vision Transformer as real software."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrail import data as data
    from vitrail.base.errors import CheckpointError as CheckpointError
    from vitrail.base.errors import ConfigError as ConfigError
    from vitrail.base.errors import ImageError as ImageError
    from vitrail.base.errors import InputError as InputError
    from vitrail.base.errors import VitrailError as VitrailError
    from vitrail.checkpoint.files import load as load
    from vitrail.checkpoint.files import save as save
    from vitrail.data.preprocessing import Preprocessing as Preprocessing
    from vitrail.model.build import build as build
    from vitrail.model.build import configure as configure
    from vitrail.model.build import create as create
    from vitrail.model.config import BackboneConfig as BackboneConfig
    from vitrail.model.config import ViTConfig as ViTConfig
    from vitrail.model.resnet import ResNet as ResNet
    from vitrail.model.resnet import ResNetConfig as ResNetConfig
    from vitrail.model.trace import Trace as Trace
    from vitrail.model.vit import ViT as ViT
    from vitrail.prediction.classifier import Classifier as Classifier
    from vitrail.verbs.evaluate import evaluate as evaluate
    from vitrail.verbs.fewshot import fewshot as fewshot
    from vitrail.verbs.predict import predict as predict

__version__ = "0.1.0"

# Public name -> the module that has it; imported when first used, so that `vitrail --help` never waits for torch.
_HOMES = {
    "BackboneConfig": "vitrail.model.config",
    "CheckpointError": "vitrail.base.errors",
    "Classifier": "vitrail.prediction.classifier",
    "ConfigError": "vitrail.base.errors",
    "ImageError": "vitrail.base.errors",
    "InputError": "vitrail.base.errors",
    "Preprocessing": "vitrail.data.preprocessing",
    "ResNet": "vitrail.model.resnet",
    "ResNetConfig": "vitrail.model.resnet",
    "Trace": "vitrail.model.trace",
    "ViT": "vitrail.model.vit",
    "ViTConfig": "vitrail.model.config",
    "VitrailError": "vitrail.base.errors",
    "build": "vitrail.model.build",
    "configure": "vitrail.model.build",
    "create": "vitrail.model.build",
    "evaluate": "vitrail.verbs.evaluate",
    "fewshot": "vitrail.verbs.fewshot",
    "load": "vitrail.checkpoint.files",
    "predict": "vitrail.verbs.predict",
    "save": "vitrail.checkpoint.files",
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module("vitrail.data")
    if name not in _HOMES:
        raise AttributeError(f"module 'vitrail' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
