"""timm's families as its own code computes them, at several sizes and rectangles (tests/golden/record_families.py)."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import vitrail
from tests.tiny import close

RECORDED = Path(__file__).parent.parent / "golden" / "families"
# Recorded model -> fields of ours.
FAMILIES = {
    "clip": {"norm_embedded": True, "gelu": "quick"},
    "deit3": {"norm_eps": 1e-6},
    "deit_distilled": {"pool": "distilled", "distillation_token": True},
    "dinov2_giant": {"mlp": "swiglu"},
    "dinov2_registers": {"registers": 4},
    "dinov3": {"positions": "none", "registers": 4},
    "eva02": {"mlp": "swiglu"},
    "map_beside_class_token": {"pool": "attention", "pool_prefix": False},
    "perception": {"pool": "attention", "pool_prefix": True, "pool_heads": 2},
    "rope_ape": {"positions": "learned-1d"},
    "siglip": {"pool": "attention", "class_token": False},
    "siglip_gap": {"pool": "mean"},
    "token_with_fc_norm": {"pool": "class-token", "norm_pooled": False},
}


def test_every_recorded_family_is_tested() -> None:
    assert {path.stem for path in RECORDED.glob("*.npz")} == set(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_outputs_are_timms_at_every_size(name, tmp_path) -> None:
    recorded = np.load(RECORDED / f"{name}.npz")
    weights = {key[8:]: torch.tensor(recorded[key]).float() for key in recorded if key.startswith("weights:")}
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(str(recorded["config"]))
    sizes = [key[7:] for key in recorded if key.startswith("images:")]
    assert sizes == ["16x16", "24x24", "12x28"]
    for size in sizes:
        height, width = map(int, size.split("x"))
        model = vitrail.load(tmp_path, image_size=(height, width))
        close(model(torch.tensor(recorded[f"images:{size}"]).float()), recorded[f"outputs:{size}"], 1e-5)
    for field, value in FAMILIES[name].items():
        assert getattr(model.config, field) == value, field
