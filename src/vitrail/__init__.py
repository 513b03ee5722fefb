"""Vitrail: the Vision Transformer as real software."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrail import data as data
    from vitrail.base.errors import CheckpointError as CheckpointError
    from vitrail.base.errors import ConfigError as ConfigError
    from vitrail.base.errors import ImageError as ImageError
    from vitrail.base.errors import InputError as InputError
    from vitrail.base.errors import NetworkError as NetworkError
    from vitrail.base.errors import VitrailError as VitrailError
    from vitrail.checkpoint.files import load as load
    from vitrail.checkpoint.files import save as save
    from vitrail.data.preprocessing import Preprocessing as Preprocessing
    from vitrail.evaluation.evaluation import Evaluation as Evaluation
    from vitrail.evaluation.fewshot_result import FewShot as FewShot
    from vitrail.model.backbone import BackboneConfig as BackboneConfig
    from vitrail.model.build import build as build
    from vitrail.model.build import configure as configure
    from vitrail.model.build import create as create
    from vitrail.model.config import ViTConfig as ViTConfig
    from vitrail.model.cost import Cost as Cost
    from vitrail.model.resnet import ResNet as ResNet
    from vitrail.model.resnet import ResNetConfig as ResNetConfig
    from vitrail.model.rotary import RotaryConfig as RotaryConfig
    from vitrail.model.trace import Trace as Trace
    from vitrail.model.vit import ViT as ViT
    from vitrail.prediction.classifier import Classifier as Classifier
    from vitrail.prediction.prediction import Prediction as Prediction
    from vitrail.prediction.prediction import PredictionFile as PredictionFile
    from vitrail.serving.server import Server as Server
    from vitrail.studies.stress.result import StressResult as StressResult
    from vitrail.studies.study import Claim as Claim
    from vitrail.studies.study import Study as Study
    from vitrail.studies.study import Variant as Variant
    from vitrail.studies.vtab_result import VtabResult as VtabResult
    from vitrail.training.endings import DivergedError as DivergedError
    from vitrail.training.endings import StoppedError as StoppedError
    from vitrail.verbs.convert import Conversion as Conversion
    from vitrail.verbs.convert import convert as convert
    from vitrail.verbs.cost import cost as cost
    from vitrail.verbs.diff import Difference as Difference
    from vitrail.verbs.diff import diff as diff
    from vitrail.verbs.engine_table import EngineTable as EngineTable
    from vitrail.verbs.engines import engines as engines
    from vitrail.verbs.evaluate import evaluate as evaluate
    from vitrail.verbs.explain import explain as explain
    from vitrail.verbs.explanation import Explanation as Explanation
    from vitrail.verbs.explanations import Explanations as Explanations
    from vitrail.verbs.export import export as export
    from vitrail.verbs.export_result import Export as Export
    from vitrail.verbs.fewshot import fewshot as fewshot
    from vitrail.verbs.finetune import finetune as finetune
    from vitrail.verbs.inspect import inspect as inspect
    from vitrail.verbs.inspection import Inspection as Inspection
    from vitrail.verbs.models import ModelList as ModelList
    from vitrail.verbs.models import list_models as list_models
    from vitrail.verbs.plan import Plan as Plan
    from vitrail.verbs.plan import plan as plan
    from vitrail.verbs.predict import predict as predict
    from vitrail.verbs.pretrain import pretrain as pretrain
    from vitrail.verbs.published import PublishedList as PublishedList
    from vitrail.verbs.published import list_published as list_published
    from vitrail.verbs.pull import Pulled as Pulled
    from vitrail.verbs.pull import PulledList as PulledList
    from vitrail.verbs.pull import list_pulled as list_pulled
    from vitrail.verbs.pull import pull as pull
    from vitrail.verbs.pull import remove_pulled as remove_pulled
    from vitrail.verbs.recipes import RecipeList as RecipeList
    from vitrail.verbs.recipes import RecipeSummary as RecipeSummary
    from vitrail.verbs.recipes import list_recipes as list_recipes
    from vitrail.verbs.recipes import recipe as recipe
    from vitrail.verbs.serve import serve as serve
    from vitrail.verbs.show import Description as Description
    from vitrail.verbs.show import show as show
    from vitrail.verbs.stress import stress as stress
    from vitrail.verbs.studies import StudyList as StudyList
    from vitrail.verbs.studies import list_studies as list_studies
    from vitrail.verbs.study import study as study
    from vitrail.verbs.study_result import StudyResult as StudyResult
    from vitrail.verbs.survey import Survey as Survey
    from vitrail.verbs.survey import survey as survey
    from vitrail.verbs.train import train as train
    from vitrail.verbs.trained import FinetunedRun as FinetunedRun
    from vitrail.verbs.trained import TrainedRun as TrainedRun
    from vitrail.verbs.verify import Verification as Verification
    from vitrail.verbs.verify import verify as verify
    from vitrail.verbs.vtab import vtab as vtab

__version__ = "0.1.0"

# Public name -> the module that has it; imported when first used, so that `vitrail --help` never waits for torch.
_HOMES = {
    "BackboneConfig": "vitrail.model.backbone",
    "CheckpointError": "vitrail.base.errors",
    "Classifier": "vitrail.prediction.classifier",
    "ConfigError": "vitrail.base.errors",
    "Conversion": "vitrail.verbs.convert",
    "Claim": "vitrail.studies.study",
    "Cost": "vitrail.model.cost",
    "Description": "vitrail.verbs.show",
    "Difference": "vitrail.verbs.diff",
    "DivergedError": "vitrail.training.endings",
    "EngineTable": "vitrail.verbs.engine_table",
    "Evaluation": "vitrail.evaluation.evaluation",
    "Explanation": "vitrail.verbs.explanation",
    "Explanations": "vitrail.verbs.explanations",
    "Export": "vitrail.verbs.export_result",
    "FewShot": "vitrail.evaluation.fewshot_result",
    "FinetunedRun": "vitrail.verbs.trained",
    "ImageError": "vitrail.base.errors",
    "InputError": "vitrail.base.errors",
    "Inspection": "vitrail.verbs.inspection",
    "ModelList": "vitrail.verbs.models",
    "NetworkError": "vitrail.base.errors",
    "Plan": "vitrail.verbs.plan",
    "Prediction": "vitrail.prediction.prediction",
    "PredictionFile": "vitrail.prediction.prediction",
    "Preprocessing": "vitrail.data.preprocessing",
    "PublishedList": "vitrail.verbs.published",
    "Pulled": "vitrail.verbs.pull",
    "PulledList": "vitrail.verbs.pull",
    "RecipeList": "vitrail.verbs.recipes",
    "RecipeSummary": "vitrail.verbs.recipes",
    "ResNet": "vitrail.model.resnet",
    "ResNetConfig": "vitrail.model.resnet",
    "RotaryConfig": "vitrail.model.rotary",
    "Server": "vitrail.serving.server",
    "StoppedError": "vitrail.training.endings",
    "StressResult": "vitrail.studies.stress.result",
    "Study": "vitrail.studies.study",
    "StudyList": "vitrail.verbs.studies",
    "StudyResult": "vitrail.verbs.study_result",
    "Survey": "vitrail.verbs.survey",
    "Trace": "vitrail.model.trace",
    "TrainedRun": "vitrail.verbs.trained",
    "Variant": "vitrail.studies.study",
    "Verification": "vitrail.verbs.verify",
    "ViT": "vitrail.model.vit",
    "ViTConfig": "vitrail.model.config",
    "VitrailError": "vitrail.base.errors",
    "VtabResult": "vitrail.studies.vtab_result",
    "build": "vitrail.model.build",
    "configure": "vitrail.model.build",
    "convert": "vitrail.verbs.convert",
    "cost": "vitrail.verbs.cost",
    "create": "vitrail.model.build",
    "diff": "vitrail.verbs.diff",
    "engines": "vitrail.verbs.engines",
    "evaluate": "vitrail.verbs.evaluate",
    "explain": "vitrail.verbs.explain",
    "export": "vitrail.verbs.export",
    "fewshot": "vitrail.verbs.fewshot",
    "finetune": "vitrail.verbs.finetune",
    "inspect": "vitrail.verbs.inspect",
    "list_models": "vitrail.verbs.models",
    "list_published": "vitrail.verbs.published",
    "list_pulled": "vitrail.verbs.pull",
    "list_recipes": "vitrail.verbs.recipes",
    "list_studies": "vitrail.verbs.studies",
    "load": "vitrail.checkpoint.files",
    "plan": "vitrail.verbs.plan",
    "predict": "vitrail.verbs.predict",
    "pretrain": "vitrail.verbs.pretrain",
    "pull": "vitrail.verbs.pull",
    "recipe": "vitrail.verbs.recipes",
    "remove_pulled": "vitrail.verbs.pull",
    "save": "vitrail.checkpoint.files",
    "serve": "vitrail.verbs.serve",
    "show": "vitrail.verbs.show",
    "stress": "vitrail.verbs.stress",
    "study": "vitrail.verbs.study",
    "survey": "vitrail.verbs.survey",
    "train": "vitrail.verbs.train",
    "verify": "vitrail.verbs.verify",
    "vtab": "vitrail.verbs.vtab",
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
