"""Masked autoencoders of Hugging Face, whole: the encoder as a model, and the decoder behind it."""

import re
from pathlib import Path

import torch
from torch import Tensor

from vitrail.base.container import open_container
from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.files import load
from vitrail.checkpoint.formats.folder import read_json, setting
from vitrail.data.preprocessing import preset
from vitrail.selfsup.mae import DecoderConfig, MAEConfig, MaskedAutoencoder
from vitrail.training.learner import Task, make_learner

_BLOCK = re.compile(r"decoder\.(?:decoder_layers|decoder_encoder\.layer)\.(\d+)\.(.+)\.(weight|bias)")
_OUTSIDE = {
    "decoder.decoder_embed": "embed",
    "decoder.decoder_norm": "encoder.norm",
    "decoder.decoder_pred": "predictor",
}
# The names on disk, of all versions of transformers -> ours, inside a block.
_INSIDE = {
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
    "attention.output.dense": "attention.out",
    "attention.o_proj": "attention.out",
    "intermediate.dense": "mlp.hidden",
    "mlp.fc1": "mlp.hidden",
    "output.dense": "mlp.out",
    "mlp.fc2": "mlp.out",
}
_STACKED = {
    **dict.fromkeys(("attention.attention.query", "attention.q_proj"), 0),
    **dict.fromkeys(("attention.attention.key", "attention.k_proj"), 1),
    **dict.fromkeys(("attention.attention.value", "attention.v_proj"), 2),
}


def load_masked_autoencoder(path: str | Path) -> MaskedAutoencoder:
    """Read a folder that transformers' ViTMAEForPreTraining has saved, and return the learner in evaluation mode."""
    folder = Path(path)
    settings = read_json(folder / "config.json")
    model = load(folder).float()
    decoder = DecoderConfig(
        dim=setting(settings, "decoder_hidden_size", int, 512),
        depth=setting(settings, "decoder_num_hidden_layers", int, 8),
        num_heads=setting(settings, "decoder_num_attention_heads", int, 16),
        mlp_dim=setting(settings, "decoder_intermediate_size", int, 2048),
    )
    config = MAEConfig(
        rate=setting(settings, "mask_ratio", float, 0.75),
        normalised=setting(settings, "norm_pix_loss", bool, False),
        decoder=decoder,
    )
    config.check(model.config, [])
    size, channels = model.config.image_size, model.config.channels
    pixels = model.info.preprocessing or preset("imagenet", image_size=size, channels=channels)
    learner = make_learner(config, model, Task(preprocessing=pixels), seed=0)
    assert isinstance(learner, MaskedAutoencoder)  # noqa: S101 - what this config makes
    _fill(learner, open_container(folder / "model.safetensors").source)
    return learner.eval()


@torch.no_grad()
def _fill(learner: MaskedAutoencoder, source: TensorSource) -> None:
    """Put the decoder of a file into a learner; every tensor must be there, and fit."""
    own = learner.decoder.state_dict() | {"positions": learner.decoder.positions}
    stored = _decoder_state(source, learner.patch_size, learner.model.config.channels)
    apart = [f"{name} is missing" for name in own if name not in stored]
    apart += [
        f"{name} of {tuple(stored[name].shape)} for {tuple(tensor.shape)}"
        for name, tensor in own.items()
        if name in stored and stored[name].shape != tensor.shape
    ]
    if apart:
        raise CheckpointError(f"the decoder in {source.origin} does not fit: {'; '.join(apart)}.")
    for name, tensor in own.items():
        tensor.copy_(stored[name])


def _decoder_state(source: TensorSource, patch_size: tuple[int, int], channels: int) -> dict[str, Tensor]:
    """Return the decoder's tensors by our names, in our order of pixels: channel, row, column."""
    state: dict[str, Tensor] = {}
    stacks: dict[str, dict[int, Tensor]] = {}
    for name in source.specs:
        whole, _, part = name.rpartition(".")
        if match := _BLOCK.fullmatch(name):
            block, inside, part = f"encoder.blocks.{match[1]}", match[2], match[3]
            if inside in _STACKED:
                stacks.setdefault(f"{block}.attention.qkv.{part}", {})[_STACKED[inside]] = source[name]
            elif inside in _INSIDE:
                state[f"{block}.{_INSIDE[inside]}.{part}"] = source[name]
        elif whole in _OUTSIDE:
            state[f"{_OUTSIDE[whole]}.{part}"] = source[name]
        elif name == "decoder.mask_token":
            state["mask"] = source[name][0]
        elif name == "decoder.decoder_pos_embed":
            state["positions"] = source[name][0]
    state |= {name: torch.cat([parts[at] for at in range(3)]) for name, parts in stacks.items() if len(parts) == 3}
    for name in ("predictor.weight", "predictor.bias"):
        if name in state and len(state[name]) == channels * patch_size[0] * patch_size[1]:
            state[name] = state[name].unflatten(0, (*patch_size, channels)).movedim(2, 0).flatten(0, 2)
    return state
