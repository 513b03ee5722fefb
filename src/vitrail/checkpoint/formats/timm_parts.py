"""What the tensors of a timm state dict show of its structure, as text: the key into the table of architectures."""

from collections.abc import Mapping

from vitrail.base.tensors import Shape

# A tensor -> the part that it shows, in the order of the text.
_PARTS = {
    "patch_embed.proj.bias": "bias",
    "cls_token": "class",
    "dist_token": "distillation",
    "pos_embed": "positions",
    "norm_pre.weight": "pre-norm",
    "norm.weight": "norm",
    "rope.freqs": "mixed",
    "fc_norm.weight": "fc-norm",
    "attn_pool.latent": "attention-pool",
    "blocks.0.attn.qkv.bias": "qkv-bias",
    "blocks.0.attn.q_bias": "q-v-bias",
    "blocks.0.attn.q_proj.weight": "split",
    "blocks.0.attn.q_proj.bias": "q-bias",
    "blocks.0.attn.k_proj.bias": "k-bias",
    "blocks.0.attn.proj.bias": "out-bias",
    "blocks.0.ls1.gamma": "ls",
    "blocks.0.gamma_1": "gamma",
    "blocks.0.mlp.fc1_g.weight": "gate",
    "blocks.0.mlp.fc1.bias": "mlp-bias",
}


def parts_of(shapes: Mapping[str, Shape]) -> str:
    """Write sizes and parts of a state dict: `768 3072/3072 16x16 bias class positions norm ...`."""
    kernel = shapes.get("patch_embed.proj.weight", ())
    hidden, out = (shapes.get(f"blocks.0.mlp.{name}.weight", ()) for name in ("fc1", "fc2"))
    hidden = shapes.get("blocks.0.mlp.fc1_x.weight", hidden)
    sizes = [
        *kernel[:1],
        f"{'x'.join(map(str, hidden[:1]))}/{'x'.join(map(str, out[1:]))}",
        "x".join(map(str, kernel[2:])),
    ]
    registers = shapes.get("reg_token", ())
    hybrid = ["hybrid"] if any(name.startswith("patch_embed.backbone.") for name in shapes) else []
    parts = [part for name, part in _PARTS.items() if name in shapes]
    parts += ["packed"] if hidden and out and hidden[0] == 2 * out[1] else []
    return " ".join(map(str, [*sizes, *hybrid, *parts, *(f"registers-{count}" for count in registers[1:2])]))
