"""Files as programs of training release them, against the same models in torch's own layers (`tests/reference`)."""

import re
from argparse import Namespace
from typing import Any

import pytest
import torch
from torch import Tensor

import vitrail
from tests.reference.releases import Perception, Released, randomised
from tests.tiny import close
from vitrail import CheckpointError

IMAGENET = (0.485, 0.456, 0.406)
OPTIMIZER = {"state": {0: {"exp_avg": torch.zeros(3), "step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]}
TINY = {"dim": 192, "heads": 3}
DINOV2 = {"dim": 384, "heads": 6, "patch": 14, "side": 518, "scales": "ls", "mask_token": True}


def below(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value for name, value in state.items()}


def model_of(seed: int = 0, **settings: Any) -> Released:
    torch.manual_seed(seed)
    return randomised(Released(**settings), seed)


def images_of(height: int, width: int) -> Tensor:
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1))


def check(saved: Any, model: torch.nn.Module, folder, *sizes: tuple[int, int], **answers: Any) -> torch.nn.Module:
    """Save as a program does, load without more answers than the image size, and compare at each size."""
    torch.save(saved, folder / "x.pth")
    for size in sizes:
        loaded = vitrail.load(folder / "x.pth", pickle=True, **answers, image_size=size)
        images = images_of(*size)
        with torch.no_grad():
            close(loaded(images), model(images), 1e-5)
    return loaded


def test_dino_gives_the_teacher_and_resizes_as_its_program_does(tmp_path) -> None:
    teacher, student = model_of(**TINY, resize="dino"), model_of(1, **TINY)
    head = {"head.mlp.0.weight": torch.zeros(3, 192), "head.last_layer.weight_g": torch.zeros(5, 1)}
    saved = {
        "student": below("module.backbone.", student.state_dict()) | below("module.", head),
        "teacher": below("backbone.", teacher.state_dict()) | head,
        "optimizer": OPTIMIZER,
        "epoch": 100,
        "args": Namespace(arch="vit_tiny", patch_size=16, out_dim=65536),
        "dino_loss": {"center": torch.zeros(1, 5)},
    }
    loaded = check(saved, teacher, tmp_path, (224, 224), (48, 80))
    assert loaded.info.preprocessing.mean == IMAGENET
    assert any("(teacher) was taken, not the weights themselves (student)" in note for note in loaded.info.notes)


def test_ibots_extracted_backbone_leaves_its_mask_aside(tmp_path) -> None:
    model = model_of(**TINY)
    saved = {"state_dict": model.state_dict() | {"masked_embed": torch.zeros(1, 192)}}
    loaded = check(saved, model, tmp_path, (224, 224))
    assert "a mask token for training was left aside." in loaded.info.notes


def test_mae_leaves_its_decoder_aside(tmp_path) -> None:
    model = model_of(dim=768, heads=12, depth=12)
    decoder = {"mask_token": torch.zeros(1, 1, 512), "decoder_embed.weight": torch.zeros(512, 768)}
    decoder |= {"decoder_blocks.0.attn.qkv.weight": torch.zeros(9, 3), "decoder_pos_embed": torch.zeros(1, 197, 512)}
    arguments = Namespace(model="mae_vit_base_patch16", mask_ratio=0.75, norm_pix_loss=True)
    saved = {"model": model.state_dict() | decoder, "optimizer": OPTIMIZER, "scaler": {}, "args": arguments}
    loaded = check(saved, model, tmp_path, (64, 96))
    assert loaded.info.preprocessing.mean == IMAGENET
    assert "a mask token, a decoder for training was left aside." in loaded.info.notes


def test_maes_fine_tuned_models_have_an_epsilon_of_their_own(tmp_path) -> None:
    """The one model of timm's list with these tensors has another, which would give wrong outputs in silence."""
    model = model_of(dim=768, heads=12, classes=10, mean=True)
    arguments = Namespace(model="vit_base_patch16", global_pool=True, nb_classes=10, layer_decay=0.65)
    loaded = check({"model": model.state_dict(), "args": arguments}, model, tmp_path, (64, 96))
    assert (loaded.config.norm_eps, loaded.config.pool) == (1e-6, "mean")
    torch.save({"model": model.state_dict()}, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match=r"its norm_eps, .*\(beit3_base_patch16_224 1e-05, vit_base_"):
        vitrail.load(tmp_path / "x.pth", pickle=True)
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True, architecture="vit_base_patch16")
    assert (loaded.config.norm_eps, loaded.info.preprocessing.crop_fraction) == (1e-6, 0.875)


def test_a_linear_probe_of_mae_sees_the_class_token(tmp_path) -> None:
    model = model_of(dim=768, heads=12, classes=10)
    arguments = Namespace(model="vit_base_patch16", global_pool=False, nb_classes=10)
    loaded = check({"model": model.state_dict(), "args": arguments}, model, tmp_path, (64, 96))
    assert loaded.config.pool == "class-token"


@pytest.mark.parametrize(("arch", "dim", "heads"), [("vit_small", 384, 12), ("vit_base", 768, 12)])
def test_moco_v3_gives_the_base_encoder(arch, dim, heads, tmp_path) -> None:
    base, momentum = (model_of(seed, dim=dim, heads=heads, resize="antialias") for seed in (0, 1))
    head = {"head.0.weight": torch.zeros(4, dim), "head.1.running_mean": torch.zeros(4)}
    state = below("module.base_encoder.", base.state_dict() | head)
    state |= below("module.momentum_encoder.", momentum.state_dict() | head)
    state |= {"module.predictor.0.weight": torch.zeros(2, 2)}
    saved = {"epoch": 300, "arch": arch, "state_dict": state, "optimizer": OPTIMIZER, "scaler": {}}
    loaded = check(saved, base, tmp_path, (48, 64))
    assert loaded.config.num_heads == heads


def test_deit_gives_the_average_of_the_weights(tmp_path) -> None:
    average, raw = model_of(**TINY, classes=10), model_of(1, **TINY, classes=10)
    arguments = Namespace(model="deit_tiny_patch16_224", distillation_type="none", input_size=224)
    saved = {"model": raw.state_dict(), "model_ema": average.state_dict(), "args": arguments, "epoch": 1}
    loaded = check(saved | {"optimizer": OPTIMIZER, "scaler": {}}, average, tmp_path, (224, 224), (96, 160))
    assert (loaded.info.preprocessing.mean, loaded.info.preprocessing.crop_fraction) == (IMAGENET, 0.875)


def test_deit_iii_is_not_taken_for_its_twin_with_rotary_positions(tmp_path) -> None:
    """The same names and shapes; only the name of the architecture tells them apart."""
    model = model_of(dim=384, heads=6, scales="gamma", class_entry=False, classes=10)
    torch.save({"model": model.state_dict()}, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match="may or may not have rotary positions, which no tensor shows"):
        vitrail.load(tmp_path / "x.pth", pickle=True)
    named = {"model": model.state_dict(), "args": Namespace(model="deit_small_patch16_LS", distillation_type="none")}
    loaded = check(named, model, tmp_path, (224, 224), (96, 160))
    assert loaded.config.rotary is None
    for architecture in ("deit_small_patch16_LS", "deit3_small_patch16_224"):
        check({"model": model.state_dict()}, model, tmp_path, (224, 224), architecture=architecture)


@pytest.mark.parametrize(("dim", "heads"), [(192, 3), (768, 12)])
def test_i_jepa_gives_the_target_encoder(dim, heads, tmp_path) -> None:
    """timm's models of the base size have other heads and other pixels; the program decides."""
    sizes = {"dim": dim, "heads": heads, "class_token": False, "mean": True}
    target, encoder = model_of(**sizes), model_of(1, **sizes)
    saved = {
        "encoder": below("module.", encoder.state_dict()),
        "predictor": {"module.predictor_embed.weight": torch.zeros(3, 3)},
        "target_encoder": below("module.", target.state_dict()),
        "opt": OPTIMIZER,
        "scaler": None,
        "epoch": 300,
        "loss": 0.1,
        "lr": 0.1,
    }
    loaded = check(saved, target, tmp_path, (48, 64))
    assert loaded.info.preprocessing.mean == IMAGENET


def test_dinov2_resizes_as_its_program_does(tmp_path) -> None:
    model = model_of(**DINOV2, resize="dino")
    loaded = check(model.state_dict(), model, tmp_path, (98, 140), (28, 280), (112, 112))
    assert loaded.info.preprocessing.mean == IMAGENET
    assert loaded.config.position_resize == "dino"


def test_dinov2_with_registers_resizes_with_antialias(tmp_path) -> None:
    model = model_of(**DINOV2, registers="register_tokens", resize="antialias")
    loaded = check(model.state_dict(), model, tmp_path, (98, 140))
    assert loaded.config.registers == 4


def test_the_giant_of_dinov2_has_a_gate_in_one_layer(tmp_path) -> None:
    sizes = DINOV2 | {"dim": 48, "heads": 6, "depth": 2, "side": 56, "ratio": 8 / 3, "gate": "w12"}
    model = model_of(**sizes, registers="register_tokens", resize="antialias")
    answers = {"num_heads": 6, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"}
    loaded = check(model.state_dict(), model, tmp_path, (56, 56), (28, 84), **answers)
    assert loaded.config.mlp == "swiglu"


def test_blocks_in_chunks_keep_their_numbers(tmp_path) -> None:
    """A teacher of DINOv2's training, with four chunks of blocks."""
    model = model_of(**DINOV2, resize="dino")
    state = {
        re.sub(r"^blocks\.(\d+)\.", lambda match: f"blocks.{int(match[1]) // 3}.{match[1]}.", name): value
        for name, value in model.state_dict().items()
    }
    assert "blocks.3.11.norm1.weight" in state
    saved = {"teacher": below("backbone.", state) | {"dino_head.mlp.0.weight": torch.zeros(3, 3)}}
    check(saved, model, tmp_path, (56, 84))


@pytest.mark.parametrize(("gate", "ratio"), [("", 4), ("w1", 4)])
def test_dinov3_masks_the_bias_of_keys_and_turns_at_any_size(gate, ratio, tmp_path) -> None:
    sizes = {"dim": 384, "heads": 6, "eps": 1e-5, "scales": "ls", "ratio": ratio, "gate": gate}
    model = model_of(**sizes, rope=True, registers="storage_tokens", mask_token=True)
    loaded = check(model.state_dict(), model, tmp_path, (224, 224), (96, 160))
    assert loaded.config.registers == 4
    torch.save(model.state_dict(), tmp_path / "x.pth")
    assert vitrail.load(tmp_path / "x.pth", pickle=True).config.image_size == (224, 224)


def test_mmpretrain_has_other_words_and_the_head_beside_the_backbone(tmp_path) -> None:
    """Words of mmpretrain's VisionTransformer and VisionTransformerClsHead."""
    model = model_of(**TINY, scales="ls", classes=10)
    words = {
        r"^patch_embed\.proj\.": "patch_embed.projection.",
        r"^blocks\.(\d+)\.norm": r"layers.\1.ln",
        r"^blocks\.(\d+)\.mlp\.fc1\.": r"layers.\1.ffn.layers.0.0.",
        r"^blocks\.(\d+)\.mlp\.fc2\.": r"layers.\1.ffn.layers.1.",
        r"^blocks\.(\d+)\.ls1\.gamma": r"layers.\1.attn.gamma1.weight",
        r"^blocks\.(\d+)\.ls2\.gamma": r"layers.\1.ffn.gamma2.weight",
        r"^blocks\.": "layers.",
        r"^norm\.": "ln1.",
        r"^head\.": "head.layers.head.",
    }
    state = {}
    for name, value in model.state_dict().items():
        for pattern, word in words.items():
            name = re.sub(pattern, word, name)
        state[name if name.startswith("head.") else f"backbone.{name}"] = value
    saved = {"meta": {"mmpretrain_version": "1.2.0"}, "state_dict": state}
    answers = {"num_heads": 3, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"}
    check(saved, model, tmp_path, (224, 224), **answers)


def test_lightning_keeps_the_model_below_a_name_of_its_users(tmp_path) -> None:
    model = model_of(**TINY, classes=10)
    state = below("net.backbone.", model.state_dict()) | {"loss.weight": torch.zeros(5)}
    saved = {"pytorch-lightning_version": "2.5", "state_dict": state, "callbacks": {}, "optimizer_states": [OPTIMIZER]}
    loaded = check(saved, model, tmp_path, (224, 224))
    assert any("checkpoint of training by Lightning" in note for note in loaded.info.notes)


@pytest.mark.parametrize("class_token", [True, False])
@pytest.mark.parametrize("core", [True, False])
@pytest.mark.parametrize("prefix", ["", "visual."])
def test_perception_encoder_is_read_from_metas_own_file(core, class_token, prefix, tmp_path) -> None:
    torch.manual_seed(0)
    sizes = {"dim": 192, "heads": 3, "depth": 2, "patch": 8, "side": 48}
    model = randomised(Perception(**sizes, core=core, class_token=class_token))
    state = below(prefix, model.state_dict()) | ({"logit_scale": torch.zeros(())} if prefix else {})
    loaded = check(state, model, tmp_path, (48, 48), (32, 56))
    assert loaded.config.projection_size == (20 if core else None)
    assert (loaded.info.preprocessing.mean, loaded.info.preprocessing.geometry) == ((0.5, 0.5, 0.5), "square")


def test_the_largest_perception_encoder_is_refused_by_name(tmp_path) -> None:
    sizes = {"dim": 192, "heads": 3, "depth": 2, "patch": 8, "side": 48}
    state = Perception(**sizes, core=True, class_token=False).state_dict()
    state["attn_pool.mlp.c_fc.weight"] = torch.zeros(64, 192)
    torch.save(state, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match=r"MLP of another width than its blocks \(PE-Core-G14\)"):
        vitrail.load(tmp_path / "x.pth", pickle=True)


@pytest.mark.parametrize(
    ("architecture", "sizes", "crop"),
    [
        ("deit_tiny_patch16_224", TINY | {"classes": 5}, 0.9),
        ("vit_small_patch16_224.dino", {"dim": 384, "heads": 6}, 0.9),
        ("vit_base_patch16_224.mae", {"dim": 768, "heads": 12}, 0.9),
    ],
)
def test_bare_releases_never_get_the_pixels_of_another_model(architecture, sizes, crop, tmp_path) -> None:
    """Google's models have the same tensors and other statistics, so the file alone cannot tell."""
    model = model_of(**sizes)
    torch.save({"model": model.state_dict()}, tmp_path / "x.pth")
    info = vitrail.load(tmp_path / "x.pth", pickle=True).info
    assert info.preprocessing is None
    assert "published models like it differ" in info.doubt
    with pytest.raises(vitrail.VitrailError, match="how images become its input"):
        vitrail.predict(tmp_path / "x.pth", torch.zeros(3, 8, 8, dtype=torch.uint8), pickle=True)
    pixels = vitrail.load(tmp_path / "x.pth", pickle=True, architecture=architecture).info.preprocessing
    assert (pixels.mean, pixels.crop_fraction) == (IMAGENET, crop)
