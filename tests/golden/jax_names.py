"""The reference release's parameters (linen names) under our names: a table of patterns and a reshape for each."""

import re

import numpy as np
import torch

_ATTENTION = "MultiHeadDotProductAttention_0"


def _dense(array: np.ndarray) -> np.ndarray:
    return array.T


def _heads_out(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1]).T  # (head, head_dim, D) -> (D, D)


def _kernel(array: np.ndarray) -> np.ndarray:
    return array.transpose(3, 2, 0, 1)  # HWIO -> OIHW


def _patch_kernel(array: np.ndarray) -> np.ndarray:
    return _kernel(array).reshape(array.shape[3], -1)


def _copy(array: np.ndarray) -> np.ndarray:
    return array


def _squeeze(array: np.ndarray) -> np.ndarray:
    return array[0]


# Their name -> our name, {0} and {1} counting from 0, and how the array changes.
_RULES = [
    (r"embedding/kernel", "embedding.projection.weight", _patch_kernel),
    (r"embedding/bias", "embedding.projection.bias", _copy),
    (r"cls", "embedding.class_token", _squeeze),
    (r"Transformer/posembed_input/pos_embedding", "embedding.positions.table", _squeeze),
    (r"Transformer/encoderblock_(\d+)/LayerNorm_0/(scale|bias)", "encoder.blocks.{0}.norm1.{1}", _copy),
    (r"Transformer/encoderblock_(\d+)/LayerNorm_1/(scale|bias)", "encoder.blocks.{0}.norm2.{1}", _copy),
    (rf"Transformer/encoderblock_(\d+)/{_ATTENTION}/out/kernel", "encoder.blocks.{0}.attention.out.weight", _heads_out),
    (rf"Transformer/encoderblock_(\d+)/{_ATTENTION}/out/bias", "encoder.blocks.{0}.attention.out.bias", _copy),
    (r"Transformer/encoderblock_(\d+)/MlpBlock_0/Dense_0/kernel", "encoder.blocks.{0}.mlp.hidden.weight", _dense),
    (r"Transformer/encoderblock_(\d+)/MlpBlock_0/Dense_0/bias", "encoder.blocks.{0}.mlp.hidden.bias", _copy),
    (r"Transformer/encoderblock_(\d+)/MlpBlock_0/Dense_1/kernel", "encoder.blocks.{0}.mlp.out.weight", _dense),
    (r"Transformer/encoderblock_(\d+)/MlpBlock_0/Dense_1/bias", "encoder.blocks.{0}.mlp.out.bias", _copy),
    (r"Transformer/encoder_norm/(scale|bias)", "encoder.norm.{0}", _copy),
    (r"pre_logits/kernel", "head.representation.weight", _dense),
    (r"pre_logits/bias", "head.representation.bias", _copy),
    (r"head/kernel", "head.linear.weight", _dense),
    (r"head/bias", "head.linear.bias", _copy),
    (r"conv_root/kernel", "backbone.root.conv.weight", _kernel),
    (r"gn_root/(scale|bias)", "backbone.root.norm.{0}", _copy),
    (r"block(\d+)/unit(\d+)/conv(\d)/kernel", "backbone.stages.{0}.{1}.conv{2}.weight", _kernel),
    (r"block(\d+)/unit(\d+)/gn(\d)/(scale|bias)", "backbone.stages.{0}.{1}.norm{2}.{3}", _copy),
    (r"block(\d+)/unit(\d+)/conv_proj/kernel", "backbone.stages.{0}.{1}.shortcut.conv.weight", _kernel),
    (r"block(\d+)/unit(\d+)/gn_proj/(scale|bias)", "backbone.stages.{0}.{1}.shortcut.norm.{2}", _copy),
]
_QKV = re.compile(rf"Transformer/encoderblock_(\d+)/{_ATTENTION}/(query|key|value)/(kernel|bias)")


def to_vitrail(parameters: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Rename and reshape all parameters; an unknown name is a KeyError."""
    named = {}
    for name, array in parameters.items():
        if not _QKV.fullmatch(name):
            new_name, change = _rename(name)
            named[new_name] = change(array)
    for layer in {found[1] for found in map(_QKV.fullmatch, parameters) if found}:
        prefix = f"Transformer/encoderblock_{layer}/{_ATTENTION}"
        kernels = [parameters[f"{prefix}/{part}/kernel"] for part in ("query", "key", "value")]
        biases = [parameters[f"{prefix}/{part}/bias"] for part in ("query", "key", "value")]
        dim = len(kernels[0])
        named[f"encoder.blocks.{layer}.attention.qkv.weight"] = np.concatenate([k.reshape(dim, -1).T for k in kernels])
        named[f"encoder.blocks.{layer}.attention.qkv.bias"] = np.concatenate([b.ravel() for b in biases])
    return {name: torch.tensor(array) for name, array in named.items()}


def _rename(name: str):
    for pattern, ours, change in _RULES:
        if found := re.fullmatch(pattern, name):
            words = list(found.groups())
            if name.startswith("block"):  # stages and units count from 1 there
                words[:2] = [str(int(word) - 1) for word in words[:2]]
            words = ["weight" if word == "scale" else word for word in words]
            return ours.format(*words), change
    raise KeyError(name)
