import importlib
import subprocess
import sys

import pytest

import vitrail

PUBLIC = [
    "BackboneConfig",
    "CheckpointError",
    "Classifier",
    "ConfigError",
    "ImageError",
    "InputError",
    "Preprocessing",
    "ResNet",
    "ResNetConfig",
    "Trace",
    "ViT",
    "ViTConfig",
    "VitrailError",
    "__version__",
    "build",
    "configure",
    "create",
    "evaluate",
    "fewshot",
    "load",
    "predict",
    "save",
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
