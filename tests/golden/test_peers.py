"""Our models against other libraries: values that record_peers.py wrote."""

from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.golden.timm_names import to_vitrail
from tests.tiny import close
from vitrail import ResNet, ResNetConfig, build
from vitrail.model.positions import resize_positions

FOLDER = Path(__file__).parent / "peers"


def recorded(name: str) -> dict[str, torch.Tensor]:
    with np.load(FOLDER / f"{name}.npz") as stored:
        return {key: torch.tensor(stored[key]) for key in stored if key != "recorded_with"}


POSITIONS = recorded("positions")


@cache
def resnet() -> tuple[ResNet, dict[str, torch.Tensor]]:
    values = recorded("resnet")
    weights = {name.removeprefix("weight:"): value for name, value in values.items() if name.startswith("weight:")}
    config = ResNetConfig(blocks=(2, 2, 1), width=8, norm_groups=4, num_classes=5, standardisation_eps=1e-8)
    model = build(config)
    model.load_state_dict(to_vitrail(weights), strict=True)
    return model.eval(), values


@pytest.mark.parametrize("size", ["48x32", "33x41"])
def test_the_bit_resnet_is_timms(size) -> None:
    model, values = resnet()
    close(model(values[f"images:{size}"]), values[f"logits:{size}"], 1e-5)


@pytest.mark.parametrize("size", ["48x32", "33x41"])
def test_every_stage_of_the_bit_resnet_is_timms(size) -> None:
    """In float64: standardised kernels give maps of up to 30, which float32 rounds by more than 1e-5."""
    model, values = resnet()
    trace = deepcopy(model).double().trace(values[f"images:{size}"].double())
    maps = trace.feature_maps
    pairs = [("root", maps["root"]), ("representation", trace.representation)]
    pairs += [("stage0", maps["stages.0.1"]), ("stage1", maps["stages.1.1"]), ("stage2", maps["stages.2.0"])]
    for name, given in pairs:
        close(given, values[f"{name}:{size}"], 1e-5)


@pytest.mark.parametrize("key", [key for key in POSITIONS if ":" in key])
def test_positions_move_to_another_grid_as_in_the_library(key) -> None:
    way, size = key.split(":")
    grid = tuple(map(int, size.split("x")))
    close(resize_positions(POSITIONS["table"], (14, 14), grid, way=way), POSITIONS[key], 1e-5)


@pytest.mark.parametrize("key", [key for key in POSITIONS if ":" in key])
def test_positions_without_a_class_entry_move_alike(key) -> None:
    way, size = key.split(":")
    grid = tuple(map(int, size.split("x")))
    close(resize_positions(POSITIONS["table"][1:], (14, 14), grid, way=way), POSITIONS[key][1:], 1e-5)


@pytest.mark.parametrize("size", ["7x7", "24x24"])
def test_the_libraries_differ_so_the_way_matters(size) -> None:
    grid = tuple(map(int, size.split("x")))
    ways = [
        resize_positions(POSITIONS["table"], (14, 14), grid, way=way)
        for way in ("google", "timm", "timm-npz", "huggingface", "torchvision")
    ]
    for number, one in enumerate(ways):
        assert all((one - other).abs().max() > 1e-3 for other in ways[:number])
