import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vitrail

PUBLIC = [
    "BackboneConfig",
    "CheckpointError",
    "Claim",
    "Classifier",
    "ConfigError",
    "Conversion",
    "Cost",
    "Description",
    "Difference",
    "DivergedError",
    "EngineTable",
    "Evaluation",
    "Explanation",
    "Explanations",
    "Export",
    "FewShot",
    "FinetunedRun",
    "ImageError",
    "InputError",
    "Inspection",
    "ModelList",
    "NetworkError",
    "Plan",
    "Prediction",
    "PredictionFile",
    "Preprocessing",
    "PublishedList",
    "Pulled",
    "PulledList",
    "RecipeList",
    "RecipeSummary",
    "ResNet",
    "ResNetConfig",
    "RotaryConfig",
    "Server",
    "StoppedError",
    "StressResult",
    "Study",
    "StudyList",
    "StudyResult",
    "Survey",
    "Trace",
    "TrainedRun",
    "Variant",
    "Verification",
    "ViT",
    "ViTConfig",
    "VitrailError",
    "VtabResult",
    "__version__",
    "build",
    "configure",
    "convert",
    "cost",
    "create",
    "diff",
    "engines",
    "evaluate",
    "explain",
    "export",
    "fewshot",
    "finetune",
    "inspect",
    "list_models",
    "list_published",
    "list_pulled",
    "list_recipes",
    "list_studies",
    "load",
    "plan",
    "predict",
    "pretrain",
    "pull",
    "recipe",
    "remove_pulled",
    "save",
    "serve",
    "show",
    "stress",
    "study",
    "survey",
    "train",
    "verify",
    "vtab",
]


def test_the_public_surface_is_this_list() -> None:
    assert sorted(vitrail.__all__) == PUBLIC
    assert sorted(dir(vitrail)) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name) -> None:
    assert getattr(vitrail, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'creat'"):
        _ = vitrail.creat


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, vitrail; vitrail.ConfigError; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_lazy_names_come_from_where_type_checkers_see_them() -> None:
    for name, home in vitrail._HOMES.items():
        assert getattr(importlib.import_module(home), name) is getattr(vitrail, name)


def test_the_page_of_public_names_lists_every_one_once() -> None:
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert sorted([*listed, "__version__"]) == PUBLIC
    assert "`__version__`" in page


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_described(name) -> None:
    assert name == "__version__" or getattr(vitrail, name).__doc__
