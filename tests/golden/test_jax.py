"""Our models against the reference release: recorded weights, inputs, outputs and intermediates."""

import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.golden.jax_names import to_vitrail
from tests.tiny import close
from vitrail import BackboneConfig, Trace, ViT, ViTConfig, build
from vitrail.model.positions import resize_positions

FOLDER = Path(__file__).parent / "jax"
BASE = {"dim": 64, "depth": 2, "num_heads": 4, "mlp_dim": 128, "num_classes": 10}
CONFIGS = {
    "vit_token": ViTConfig(**BASE, patch_size=(8, 8), image_size=(32, 32)),
    "vit_gap": ViTConfig(**BASE, patch_size=(8, 8), image_size=(32, 32), pool="mean"),
    "vit_prelogits": ViTConfig(**BASE, patch_size=(8, 8), image_size=(32, 32), representation_size=48),
    "hybrid_stem": ViTConfig(
        **BASE, patch_size=(4, 4), image_size=(64, 64), backbone=BackboneConfig(blocks=(), width=32)
    ),
    "hybrid_r50like": ViTConfig(
        **BASE, patch_size=(1, 1), image_size=(64, 64), backbone=BackboneConfig(blocks=(1, 2, 1), width=32)
    ),
}
MODES = {"with gradients": nullcontext, "inference mode": torch.inference_mode}


def arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz") as stored:
        return dict(stored)


@cache
def recorded(name: str) -> tuple[ViT, dict[str, np.ndarray]]:
    """The model with the recorded weights, and the recorded values."""
    model = build(CONFIGS[name])
    model.load_state_dict(to_vitrail(arrays(f"{name}.params")), strict=True)
    return model.eval(), arrays(f"{name}.io")


def tolerance(name: str) -> float:
    return 2e-5 if name.startswith("hybrid") else 1e-5


def channels_first(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array.transpose(0, 3, 1, 2))


def ours(trace: Trace, name: str) -> torch.Tensor:
    """Find in a trace what the reference release calls `name`, in its layout."""
    if name in ("conv_root", "gn_root"):
        return trace.feature_maps[{"conv_root": "root.conv", "gn_root": "root.norm"}[name]].permute(0, 2, 3, 1)
    if found := re.fullmatch(r"block(\d+)(?:/unit(\d+))?", name):
        stage = [value for key, value in trace.feature_maps.items() if key.startswith(f"stages.{int(found[1]) - 1}.")]
        return stage[int(found[2] or len(stage)) - 1].permute(0, 2, 3, 1)
    if found := re.fullmatch(r"Transformer/encoderblock_(\d+)", name):
        return trace.blocks[int(found[1])]
    return {
        "embedding": trace.patches,
        "Transformer/posembed_input": trace.embedded,
        "Transformer/Dropout_0": trace.embedded,
        "Transformer/encoder_norm": trace.encoded,
        "Transformer": trace.encoded,
        "pre_logits": trace.representation,
        "head": trace.logits,
        "__call__": trace.logits,
    }[name]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CONFIGS)
def test_the_logits_are_those_of_the_reference_release(name: str, mode: str) -> None:
    model, values = recorded(name)
    with MODES[mode]():
        close(model(channels_first(values["images"])), values["logits"], tolerance(name))


def intermediates(name: str) -> dict[str, np.ndarray]:
    _, values = recorded(name)
    named = {key.removeprefix("intermediate:"): value for key, value in values.items() if ":" in key}
    if name == "vit_prelogits":
        named["pre_logits"] = np.tanh(named["pre_logits"])  # recorded before the tanh that the last layer sees
    return named


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CONFIGS)
def test_every_recorded_intermediate_is_in_the_trace(name: str, mode: str) -> None:
    """In float32; a hybrid's maps reach 32, so there the tolerance is a share of the largest value."""
    model, values = recorded(name)
    with MODES[mode]():
        trace = model.trace(channels_first(values["images"]))
    for key, wanted in intermediates(name).items():
        size = np.abs(wanted).max() if name.startswith("hybrid") else 1
        close(ours(trace, key).reshape(wanted.shape), wanted, tolerance(name) * max(size, 1))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_recorded_intermediate_is_absolutely_close_once_our_own_rounding_is_out(name: str) -> None:
    """In float64; what is left is the rounding of the recorded float32 values, at most 1.7e-5."""
    model, values = recorded(name)
    exact = build(CONFIGS[name]).double()
    exact.load_state_dict(model.state_dict())
    trace = exact.eval().trace(channels_first(values["images"]).double())
    assert len(intermediates(name)) >= 10
    for key, wanted in intermediates(name).items():
        close(ours(trace, key).reshape(wanted.shape), wanted, tolerance(name))


def test_the_erf_gelu_does_not_reproduce_the_reference_release() -> None:
    model, values = recorded("vit_token")
    other = build(ViTConfig(**BASE, patch_size=(8, 8), image_size=(32, 32), gelu="erf"))
    other.load_state_dict(model.state_dict())
    difference = (other.eval()(channels_first(values["images"])) - torch.tensor(values["logits"])).abs().max()
    assert difference > 2e-5


@pytest.mark.parametrize("side", [7, 16, 24, 32])
def test_positions_with_a_class_entry_move_to_another_grid_like_the_reference_release(side: int) -> None:
    stored = {name: torch.tensor(value[0]) for name, value in arrays("posembed_interp").items()}
    resized = resize_positions(stored["posemb_14"], (14, 14), (side, side), way="google")
    close(resized, stored[f"posemb_{side}"], 1e-5)


def test_positions_without_a_class_entry_move_to_another_grid_like_the_reference_release() -> None:
    stored = {name: torch.tensor(value[0]) for name, value in arrays("posembed_interp").items()}
    resized = resize_positions(stored["posemb_notok_14"], (14, 14), (24, 24), way="google")
    close(resized, stored["posemb_notok_24"], 1e-5)
