"""Checkpoints of training, as programs release them: the right weights, by the right names, and a note."""

import dataclasses
import re
from argparse import Namespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import vitrail
from tests.checkpoint.making import made
from tests.tiny import close, images_for, vit_config
from vitrail import CheckpointError, RotaryConfig

ERF = {"gelu": "erf", "image_size": (16, 16)}
HINTS = {"num_heads": 4, "gelu": "erf", "norm_eps": 1e-6, "pool": "class-token"}
OPTIMIZER = {"state": {0: {"exp_avg": torch.zeros(3), "step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]}


def timm_state(config, folder, seed: int = 0):
    """A model, and its state dict in timm's names."""
    torch.manual_seed(seed)
    model = made(config)
    with torch.no_grad():
        model.encoder.norm.weight.add_(0.1 * seed)
    path = vitrail.save(model, folder / f"state{seed}.safetensors", to="timm")
    return model, load_file(path)


def below(prefix: str, state: dict) -> dict:
    return {f"{prefix}{name}": value for name, value in state.items()}


def wrapped(state: dict, other: dict) -> dict[str, tuple[dict, str | None]]:
    """By program: what it saves, `other` in place of what is not to be taken, and words of the note."""
    head = {"head.mlp.0.weight": torch.zeros(3, 32), "head.last_layer.weight_g": torch.zeros(5, 1)}
    arguments = Namespace(arch="vit_tiny", lr=np.float64(0.1), epochs=3)
    trunk = {name: value for name, value in state.items() if not name.startswith("head.")}
    return {
        "DINO": (
            {
                "student": below("module.backbone.", other) | below("module.", head),
                "teacher": below("backbone.", trunk) | head,
                "optimizer": OPTIMIZER,
                "epoch": 3,
                "args": arguments,
                "dino_loss": {"center": torch.zeros(1, 5)},
            },
            r"the average of the weights \(teacher\) was taken, not the weights themselves \(student\)",
        ),
        "DINO, the backbone alone": (trunk, None),
        "DINOv2, training": (
            {
                "teacher": below("backbone.", {re.sub(r"^blocks\.", "blocks.0.", k): v for k, v in trunk.items()})
                | below("dino_head.", head)
            },
            "dino_head",
        ),
        "MAE": (
            {
                "model": trunk | {"mask_token": torch.zeros(1, 1, 32), "decoder_embed.weight": torch.zeros(4, 32)},
                "optimizer": OPTIMIZER,
                "args": Namespace(mask_ratio=0.75, model="mae_vit_tiny"),
                "scaler": {"scale": 65536.0},
            },
            "checkpoint of training by MAE",
        ),
        "MoCo v3": (
            {
                "epoch": 300,
                "arch": "vit_base",
                "state_dict": below("module.base_encoder.", trunk | {"head.0.weight": torch.zeros(4, 32)})
                | below("module.momentum_encoder.", other)
                | {"module.predictor.0.weight": torch.zeros(2, 2)},
                "optimizer": OPTIMIZER,
            },
            "the model module.base_encoder was taken, not module.momentum_encoder",
        ),
        "DeiT": (
            {
                "model": other,
                "model_ema": state,
                "args": Namespace(distillation_type="none", model="deit_x"),
                "epoch": 1,
            },
            r"the average of the weights \(model_ema\) was taken, not the weights themselves \(model\)",
        ),
        "timm": (
            {
                "epoch": 9,
                "arch": "vit_of_mine",
                "state_dict": other,
                "state_dict_ema": below("module.", state),
                "version": 2,
                "args": Namespace(gp=None, model="vit_of_mine", mean=None),
                "metric": np.float32(81.5),
                "optimizer": OPTIMIZER,
            },
            r"the average of the weights \(state_dict_ema\)",
        ),
        "Lightning": (
            {
                "pytorch-lightning_version": "2.0",
                "state_dict": below("model.", state) | {"loss.weight": torch.zeros(5)},
                "callbacks": {},
                "hyper_parameters": {"lr": 0.1},
                "optimizer_states": [OPTIMIZER],
            },
            "what lies outside model was left aside: loss.weight",
        ),
        "torch.compile": (below("_orig_mod.", state), None),
        "DDP of a compiled model": (
            {"model": below("module._orig_mod.", state), "best_acc1": torch.tensor(71.0)},
            None,
        ),
        "FSDP": ({k.replace("blocks.0.", "blocks.0._fsdp_wrapped_module."): v for k, v in state.items()}, None),
        "net": ({"net": state, "acc": 93.1}, None),
        "params": ({"params": state, "step": 4}, None),
        "I-JEPA": (
            {"encoder": below("module.", other), "target_encoder": below("module.", trunk), "opt": OPTIMIZER},
            r"the average of the weights \(target_encoder\)",
        ),
        "a stray tensor": ({"best_acc1": torch.tensor(81.0), "state_dict": state}, None),
        "OpenCLIP's timm tower": (below("visual.trunk.", state) | {"logit_scale": torch.zeros(())}, "logit_scale"),
    }


PROGRAMS = [
    *("DINO", "DINO, the backbone alone", "DINOv2, training", "MAE", "MoCo v3", "DeiT", "timm", "Lightning"),
    *("torch.compile", "DDP of a compiled model", "FSDP", "net", "params", "I-JEPA", "a stray tensor"),
    "OpenCLIP's timm tower",
]


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "older"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_weights_of_a_training_checkpoint_are_those_that_its_program_evaluates(program, zipped, tmp_path) -> None:
    config = vit_config(**ERF)
    model, state = timm_state(config, tmp_path)
    _, other = timm_state(config, tmp_path, seed=1)
    value, note = wrapped(state, other)[program]
    torch.save(value, tmp_path / "x.pth", _use_new_zipfile_serialization=zipped)
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True, **HINTS)
    images = images_for(config)
    wanted = model(images) if loaded.config.num_classes else model.features(images)
    close(loaded(images), wanted, 1e-6)
    assert note is None or re.search(note, " ".join(loaded.info.notes)), loaded.info.notes


def test_two_models_of_equal_rank_are_refused(tmp_path) -> None:
    _, state = timm_state(vit_config(**ERF), tmp_path)
    torch.save(below("left.", state) | below("right.", state), tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match=r"holds 2 Vision Transformers \(left\., right\.\); save one of"):
        vitrail.load(tmp_path / "x.pth", pickle=True, **HINTS)


def test_the_small_model_of_moco_has_twelve_heads(tmp_path) -> None:
    """timm's models of the same sizes have 6, and no tensor shows it."""
    model, state = timm_state(vit_config(dim=384, depth=1, num_heads=12, mlp_dim=64, num_classes=0, **ERF), tmp_path)
    torch.save({"state_dict": below("module.base_encoder.", state)}, tmp_path / "x.pth")
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True, gelu="erf", norm_eps=1e-6, pool="class-token")
    assert loaded.config.num_heads == 12
    assert loaded.info.preprocessing is None
    assert "the small model of MoCo v3 has 12 heads." in loaded.info.notes
    images = images_for(model.config)
    close(loaded(images), model(images), 1e-6)


@pytest.mark.parametrize(("program", "expected"), [("DINO", "imagenet"), ("MAE", "imagenet"), ("net", None)])
def test_how_a_known_program_prepares_images_is_kept(program, expected, tmp_path) -> None:
    _, state = timm_state(vit_config(**ERF), tmp_path)
    torch.save(wrapped(state, state)[program][0], tmp_path / "x.pth")
    info = vitrail.load(tmp_path / "x.pth", pickle=True, **HINTS).info
    assert (info.preprocessing and info.preprocessing.mean) == ((0.485, 0.456, 0.406) if expected else None)
    assert (info.doubt is None) == (expected is not None)


def test_the_arguments_of_a_timm_run_tell_the_model(tmp_path) -> None:
    """DeiT's 16x16 tiny model by its name: heads, GELU, pooling and pixels need no answer."""
    config = vit_config(
        dim=192, depth=12, num_heads=3, mlp_dim=768, patch_size=(16, 16), image_size=(32, 32), gelu="erf"
    )
    model, state = timm_state(config, tmp_path)
    run = {"arch": "deit_tiny_patch16_224", "state_dict": state, "args": Namespace(gp=None, mean=None)}
    torch.save(run, tmp_path / "x.pth")
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True)
    assert (loaded.config.num_heads, loaded.config.gelu) == (3, "erf")
    assert loaded.info.preprocessing.mean == (0.485, 0.456, 0.406)
    images = images_for(config)
    close(loaded(images), model(images), 1e-6)
    run["args"] = Namespace(gp="avg", mean=[0.1, 0.2, 0.3], std=[1.0, 1.0, 1.0], crop_pct=0.5)
    torch.save(run, tmp_path / "x.pth")
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True)
    assert loaded.config.pool == "mean"
    assert (loaded.info.preprocessing.mean, loaded.info.preprocessing.crop_fraction) == ((0.1, 0.2, 0.3), 0.5)


def test_the_released_names_of_dinov2_are_read(tmp_path) -> None:
    """Register tokens, SwiGLU in w12 and w3, a position for the class token alone."""
    config = vit_config(registers=4, layer_scale=1e-5, mlp="swiglu", num_classes=0, **ERF)
    model, state = timm_state(config, tmp_path)
    words = {"reg_token": "register_tokens", ".mlp.fc1.": ".mlp.w12.", ".mlp.fc2.": ".mlp.w3."}
    for old, new in words.items():
        state = {name.replace(old, new): value for name, value in state.items()}
    state["pos_embed"] = torch.cat([state["pos_embed"][:, :1], state["pos_embed"][:, 5:]], dim=1)
    state["mask_token"] = torch.zeros(1, 32)
    torch.save(state, tmp_path / "x.pth")
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True, **HINTS)
    images = images_for(config)
    close(loaded(images), model(images), 1e-6)


def test_the_mask_of_dinov3s_biases_is_applied(tmp_path) -> None:
    """A bias of the keys is stored and masked; with rotary positions it would change the outputs."""
    sizes = {"dim": 384, "depth": 12, "num_heads": 6, "mlp_dim": 1536, "patch_size": (16, 16), "image_size": (32, 32)}
    parts = {"registers": 4, "layer_scale": 1e-5, "rotary": RotaryConfig(), "positions": "none", "norm_eps": 1e-5}
    config = vit_config(**sizes, **parts, num_classes=0, gelu="erf")
    model = made(config)
    with torch.no_grad():
        for block in model.encoder.blocks:
            block.attention.qkv.bias[384:768] = 0
    ours = model.state_dict()
    state = {
        "cls_token": ours["embedding.class_token"][None],
        "storage_tokens": ours["embedding.registers"][None],
        "mask_token": torch.zeros(1, 384),
        "patch_embed.proj.weight": ours["embedding.projection.weight"].reshape(384, 3, 16, 16),
        "patch_embed.proj.bias": ours["embedding.projection.bias"],
        "rope_embed.periods": torch.ones(16),
        "norm.weight": ours["encoder.norm.weight"],
        "norm.bias": ours["encoder.norm.bias"],
    }
    words = {"attention.qkv": "attn.qkv", "attention.out": "attn.proj", "mlp.hidden": "mlp.fc1", "mlp.out": "mlp.fc2"}
    for name, value in ours.items():
        if name.startswith("encoder.blocks."):
            new = re.sub(r"scale([12])$", r"ls\1.gamma", name.removeprefix("encoder."))
            for old, word in words.items():
                new = new.replace(old, word)
            state[new] = value
    for layer in range(12):
        state[f"blocks.{layer}.attn.qkv.bias"] = state[f"blocks.{layer}.attn.qkv.bias"].clone()
        state[f"blocks.{layer}.attn.qkv.bias"][384:768] = 7.0
        mask = torch.ones(1152)
        mask[384:768] = 0
        state[f"blocks.{layer}.attn.qkv.bias_mask"] = mask
    torch.save({name: value.clone() for name, value in state.items()}, tmp_path / "x.pth")
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True, image_size=(32, 32))
    images = images_for(config)
    close(loaded(images), model(images), 1e-5)


def mm_names(state: dict) -> dict:
    """Give a state dict of timm the names of mmpretrain."""
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
    renamed = {}
    for name, value in state.items():
        for pattern, word in words.items():
            name = re.sub(pattern, word, name)
        renamed[name if name.startswith("head.") else f"backbone.{name}"] = value
    return renamed


def test_mmpretrains_names_are_read_with_the_head_beside_the_backbone(tmp_path) -> None:
    config = vit_config(layer_scale=1e-5, **ERF)
    model, state = timm_state(config, tmp_path)
    torch.save({"meta": {"mmpretrain_version": "1.2"}, "state_dict": mm_names(state)}, tmp_path / "x.pth")
    loaded = vitrail.load(tmp_path / "x.pth", pickle=True, **HINTS)
    images = images_for(config)
    close(loaded(images), model(images), 1e-6)
    assert "checkpoint of training by mmpretrain" in " ".join(loaded.info.notes)


def test_the_layer_before_the_head_of_timms_older_files_is_read(tmp_path) -> None:
    """Files for ImageNet-21k of before 2022 have the tanh layer of pre-training, as `pre_logits.fc`."""
    config = vit_config(representation_size=12, **ERF)
    torch.manual_seed(0)
    model = made(config)
    plain = dataclasses.replace(config, representation_size=None, num_classes=0)
    trunk = vitrail.build(plain, seed=0)
    trunk.load_state_dict({name: value for name, value in model.state_dict().items() if not name.startswith("head.")})
    state = load_file(vitrail.save(trunk, tmp_path / "trunk.safetensors", to="timm"))
    words = {"pre_logits.fc": "head.representation", "head": "head.linear"}
    for new, old in words.items():
        state |= {f"{new}.{part}": model.state_dict()[f"{old}.{part}"] for part in ("weight", "bias")}
    save_file(state, tmp_path / "old.safetensors")
    loaded = vitrail.load(tmp_path / "old.safetensors", **HINTS)
    assert loaded.config.representation_size == 12
    images = images_for(config)
    close(loaded(images), model(images), 1e-6)


def test_a_prefix_in_a_safetensors_file_is_taken_off_too(tmp_path) -> None:
    config = vit_config(**ERF)
    model, state = timm_state(config, tmp_path)
    save_file(below("_orig_mod.", state), tmp_path / "x.safetensors")
    images = images_for(config)
    close(vitrail.load(tmp_path / "x.safetensors", **HINTS)(images), model(images), 1e-6)


def test_a_file_with_and_without_a_wrappers_names_is_refused(tmp_path) -> None:
    _, state = timm_state(vit_config(**ERF), tmp_path)
    torch.save(state | {"_orig_mod.cls_token": state["cls_token"]}, tmp_path / "x.pth")
    with pytest.raises(CheckpointError, match="holds some tensors twice"):
        vitrail.load(tmp_path / "x.pth", pickle=True, **HINTS)
