"""Models that are not read: each is named by a tensor that only it has, and the sentence says what to do."""

import pytest
import torch
from safetensors.torch import save_file

import vitrail
from tests.checkpoint.making import made
from tests.tiny import vit_config
from vitrail import CheckpointError

# First tensors of timm 1.0.30's models (timm.create_model(...).state_dict()) -> words of the refusal.
OTHERS = {
    "NaFlexViT": (
        ["embeds.pos_embed", "embeds.proj.weight"],
        "is a NaFlexViT of timm, .*; give",
    ),
    "vit_base_mci_224": (
        ["cls_token", "pos_embed", "patch_embed.backbone.0.conv.weight", "blocks.0.norm1.weight"],
        r"behind MobileCLIP's convolutions \(vit_base_mci_224\), .*; give",
    ),
    "Swin": (["patch_embed.proj.weight", "layers.0.blocks.0.norm1.weight"], "stages of windows .*; give"),
    "MViT": (["patch_embed.proj.weight", "stages.0.blocks.0.norm1.weight"], "stages of windows .*; give"),
    "DaViT": (
        ["stem.conv.weight", "stages.0.blocks.0.0.cpe1.proj.weight", "head.fc.weight"],
        "stages of windows .*; give",
    ),
    "VOLO": (["pos_embed", "cls_token", "patch_embed.conv.0.weight"], "convolutional stem .*; give"),
    "XCiT": (["cls_token", "patch_embed.proj.0.0.weight", "blocks.0.gamma1"], "convolutional stem .*; give"),
    "TNT": (["cls_token", "patch_pos", "pixel_pos", "pixel_embed.proj.weight"], r"\(TNT\), .*; give"),
}
# A tensor beside those of a plain model -> words of the refusal.
PARTS = {
    "blocks.0.attn.proj_l.weight": "heads that are mixed \\(CaiT\\)",
    "blocks.0.attn.gating_param": "gated attention",
    "blocks.1.proj.weight": "stages that pool their tokens \\(Hiera\\)",
    "blocks.0.mlp.norm.weight": "a LayerNorm inside its branches \\(sub-LN\\)",  # EVA-02
    "blocks.0.attn.rel_pos_h": "relative positions of another kind",
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_of_another_kind_is_named(name, tmp_path) -> None:
    tensors, words = OTHERS[name]
    save_file({tensor: torch.zeros(2, 2) for tensor in tensors}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=words):
        vitrail.load(tmp_path / "x.safetensors")


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_no_model_here_has_is_named(name, tmp_path) -> None:
    from safetensors.torch import load_file

    vitrail.save(made(vit_config(gelu="erf")), tmp_path / "x.safetensors", to="timm")
    state = load_file(tmp_path / "x.safetensors") | {name: torch.zeros(2, 2)}
    save_file(state, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match=PARTS[name]):
        vitrail.load(tmp_path / "x.safetensors")


def test_aimv2_is_refused_for_its_norms(tmp_path) -> None:
    """Its norms have no bias: RMSNorm."""
    names = ["pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias", "blocks.0.norm1.weight"]
    save_file({tensor: torch.zeros(2, 2) for tensor in names}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="is a timm model with RMSNorm"):
        vitrail.load(tmp_path / "x.safetensors")
