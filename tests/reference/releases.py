"""Vision Transformers as Meta's programs release them, in torch's own layers: their names of tensors, their arithmetic.

Nothing of Vitrail is used. One class has the parts of DINO, iBOT, MAE, MoCo v3, DeiT, DeiT III, I-JEPA, DINOv2 and
DINOv3; another is the image tower of Perception Encoder. Weights are random, away from their initial values.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def randomised(model: nn.Module, seed: int = 0) -> nn.Module:
    """Move every parameter off its initial value."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise * (0.02 if parameter.ndim > 1 else 0.2))
    return model.eval()


def turned(x: Tensor, angles: Tensor, *, neighbours: bool) -> Tensor:
    """Rotate pairs of values of patches, which come last: neighbours, or value i with value i + half."""
    head, rest = x[:, :, : x.shape[2] - len(angles)], x[:, :, x.shape[2] - len(angles) :]
    if neighbours:
        first, second = rest[..., ::2], rest[..., 1::2]
        other = torch.stack([-second, first], dim=-1).flatten(3)
    else:
        first, second = rest.chunk(2, dim=-1)
        other = torch.cat([-second, first], dim=-1)
    return torch.cat([head, rest * angles.cos() + other * angles.sin()], dim=2)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend with (batch, head, token, value) tensors, and put the heads side by side."""
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int, *, mask: bool) -> None:
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        if mask:  # DINOv3 stores a bias of keys and takes it away
            self.qkv.register_buffer("bias_mask", torch.tensor([1.0, 0.0, 1.0]).repeat_interleave(dim))

    def forward(self, x: Tensor, angles: Tensor | None) -> Tensor:
        bias = self.qkv.bias * self.qkv.bias_mask if hasattr(self.qkv, "bias_mask") else self.qkv.bias
        stack = F.linear(x, self.qkv.weight, bias).unflatten(2, (3, self.heads, -1))
        q, k, v = stack.permute(2, 0, 3, 1, 4)
        if angles is not None:
            q, k = (turned(part, angles, neighbours=False) for part in (q, k))
        return self.proj(attend(q, k, v))


class Mlp(nn.Module):
    """GELU between fc1 and fc2; or a gate, in one layer with the hidden values (w12) or beside them (w1, w2)."""

    def __init__(self, dim: int, hidden: int, gate: str) -> None:
        super().__init__()
        if gate == "w12":
            self.w12, self.w3 = nn.Linear(dim, 2 * hidden), nn.Linear(hidden, dim)
        elif gate == "w1":
            self.w1, self.w2, self.w3 = nn.Linear(dim, hidden), nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        else:
            self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "w12"):
            gate, value = self.w12(x).chunk(2, dim=-1)
            return self.w3(F.silu(gate) * value)
        if hasattr(self, "w1"):
            return self.w3(F.silu(self.w1(x)) * self.w2(x))
        return self.fc2(F.gelu(self.fc1(x)))


class Scale(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int, *, hidden: int, eps: float, scales: str, gate: str, mask: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=eps), nn.LayerNorm(dim, eps=eps)
        self.attn, self.mlp, self.scales = Attention(dim, heads, mask=mask), Mlp(dim, hidden, gate), scales
        if scales == "ls":
            self.ls1, self.ls2 = Scale(dim), Scale(dim)
        elif scales == "gamma":
            self.gamma_1, self.gamma_2 = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor, angles: Tensor | None) -> Tensor:
        first, second = torch.ones(()), torch.ones(())
        if self.scales:
            first, second = (self.ls1.gamma, self.ls2.gamma) if self.scales == "ls" else (self.gamma_1, self.gamma_2)
        x = x + first * self.attn(self.norm1(x), angles)
        return x + second * self.mlp(self.norm2(x))


class Patches(nn.Module):
    def __init__(self, dim: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, dim, patch, patch)


class Released(nn.Module):
    """One model: `resize` is how positions follow the image (`dino`, `bicubic`, `antialias`)."""

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        depth: int = 12,
        patch: int = 16,
        side: int = 224,
        ratio: float = 4,
        eps: float = 1e-6,
        class_token: bool = True,
        class_entry: bool = True,
        registers: str = "",
        mask_token: bool = False,
        scales: str = "",
        gate: str = "",
        rope: bool = False,
        resize: str = "bicubic",
        classes: int = 0,
        mean: bool = False,
    ) -> None:
        super().__init__()
        self.patch, self.resize, self.class_entry, self.mean = patch, resize, class_entry, mean
        self.patch_embed = Patches(dim, patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim)) if class_token else None
        cells = (side // patch) ** 2
        self.pos_embed = None if rope else nn.Parameter(torch.zeros(1, cells + (class_entry and class_token), dim))
        self.registers = registers
        if registers:
            setattr(self, registers, nn.Parameter(torch.zeros(1, 4, dim)))
        if mask_token:
            self.mask_token = nn.Parameter(torch.zeros(1, dim))
        block = {"hidden": int(dim * ratio), "eps": eps, "scales": scales, "gate": gate, "mask": rope}
        self.blocks = nn.ModuleList(Block(dim, heads, **block) for _ in range(depth))
        norm = nn.LayerNorm(dim, eps=eps)
        self.norm, self.fc_norm = (nn.Identity(), norm) if classes and mean else (norm, nn.Identity())
        self.head = nn.Linear(dim, classes) if classes else nn.Identity()
        self.head_dim = dim // heads
        if rope:
            self.rope_embed = nn.Module()
            exponents = torch.arange(self.head_dim // 4) / (self.head_dim // 4)
            self.rope_embed.register_buffer("periods", 100**exponents)

    def positions(self, height: int, width: int) -> Tensor:
        """Interpolate the table for a grid."""
        first = int(self.class_entry and self.cls_token is not None)
        own = math.isqrt(self.pos_embed.shape[1] - first)
        if (height, width) == (own, own):
            return self.pos_embed
        grid = self.pos_embed[:, first:].reshape(1, own, own, -1).permute(0, 3, 1, 2)
        place = {"size": (height, width)}
        if self.resize == "dino":
            place = {"scale_factor": ((height + 0.1) / own, (width + 0.1) / own)}
        grid = F.interpolate(grid, **place, mode="bicubic", antialias=self.resize == "antialias")
        return torch.cat([self.pos_embed[:, :first], grid.flatten(2).mT], dim=1)

    def angles(self, height: int, width: int) -> Tensor | None:
        """Return DINOv3's angles: coordinates from -1 to 1, rows before columns."""
        if not hasattr(self, "rope_embed"):
            return None
        rows, columns = ((torch.arange(side) + 0.5) / side * 2 - 1 for side in (height, width))
        places = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), dim=-1).reshape(-1, 2)
        return (2 * math.pi * places[:, :, None] / self.rope_embed.periods).flatten(1).repeat(1, 2)

    def forward(self, images: Tensor) -> Tensor:
        """Return classes, or what the program takes as features."""
        x = self.patch_embed.proj(images)
        grid = x.shape[2:]
        x = x.flatten(2).mT
        first = [] if self.cls_token is None else [self.cls_token.expand(len(x), -1, -1)]
        if self.pos_embed is not None and self.class_entry:
            x = torch.cat([*first, x], dim=1) + self.positions(*grid)
        else:
            x = torch.cat([*first, x if self.pos_embed is None else x + self.positions(*grid)], dim=1)
        if self.registers:
            tokens = getattr(self, self.registers).expand(len(x), -1, -1)
            x = torch.cat([x[:, :1], tokens, x[:, 1:]], dim=1)
        angles = self.angles(*grid)
        for block in self.blocks:
            x = block(x, angles)
        x = self.norm(x)
        return self.head(self.fc_norm(x[:, len(first) :].mean(dim=1) if self.mean else x[:, 0]))


class Perception(nn.Module):
    """The image tower of Perception Encoder: PE-Core with its pool and projection, or PE-Spatial without them."""

    def __init__(
        self, dim: int, heads: int, *, depth: int, patch: int, side: int, core: bool, class_token: bool
    ) -> None:
        super().__init__()
        self.heads, self.side = heads, side // patch
        self.conv1 = nn.Conv2d(3, dim, patch, patch, bias=False)
        if class_token:
            self.class_embedding = nn.Parameter(torch.zeros(dim))
        self.class_token = class_token
        self.positional_embedding = nn.Parameter(torch.zeros(self.side**2 + class_token, dim))
        self.ln_pre = nn.LayerNorm(dim)
        blocks = []
        for _ in range(depth):
            block = nn.ModuleDict({"ln_1": nn.LayerNorm(dim), "ln_2": nn.LayerNorm(dim)})
            block["attn"] = nn.MultiheadAttention(dim, heads, batch_first=True)
            block["mlp"] = nn.ModuleDict({"c_fc": nn.Linear(dim, 4 * dim), "c_proj": nn.Linear(4 * dim, dim)})
            blocks.append(block)
        self.transformer = nn.ModuleDict({"resblocks": nn.ModuleList(blocks)})
        if core:
            self.ln_post = nn.LayerNorm(dim)
            self.attn_pool = nn.ModuleDict({"layernorm": nn.LayerNorm(dim)})
            self.attn_pool.probe = nn.Parameter(torch.zeros(1, 1, dim))
            self.attn_pool["attn"] = nn.MultiheadAttention(dim, 8, batch_first=True)
            self.attn_pool["mlp"] = nn.ModuleDict({"c_fc": nn.Linear(dim, 4 * dim), "c_proj": nn.Linear(4 * dim, dim)})
            self.proj = nn.Parameter(torch.zeros(dim, 20))
        self.core = core

    def angles(self, height: int, width: int, head_dim: int) -> Tensor:
        """Return angles of neighbouring values: columns before rows, counted from 1 beside a class token."""
        speeds = 10000.0 ** -(torch.arange(0, head_dim // 2, 2) / (head_dim // 2))
        rows, columns = (
            ((torch.arange(side) + self.class_token)[:, None] * speeds).repeat_interleave(2, dim=1)
            for side in (height, width)
        )
        rows = rows[:, None].expand(height, width, -1)
        return torch.cat([columns[None].expand(height, width, -1), rows], dim=-1).flatten(0, 1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.conv1(images)
        height, width = x.shape[2:]
        table = self.positional_embedding
        if (height, width) != (self.side, self.side):
            grid = table[self.class_token :].T.reshape(1, -1, self.side, self.side)
            grid = F.interpolate(grid, size=(height, width), mode="bilinear")
            table = torch.cat([table[: self.class_token], grid[0].flatten(1).T])
        x = x.flatten(2).mT
        if self.class_token:
            x = torch.cat([self.class_embedding.expand(len(x), 1, -1), x], dim=1)
        x = self.ln_pre(x + table)
        angles = self.angles(height, width, x.shape[2] // self.heads)
        for block in self.transformer["resblocks"]:
            attention = block["attn"]
            stack = F.linear(block["ln_1"](x), attention.in_proj_weight, attention.in_proj_bias)
            q, k, v = stack.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = (turned(part, angles, neighbours=True) for part in (q, k))
            x = x + attention.out_proj(attend(q, k, v))
            x = x + block["mlp"]["c_proj"](F.gelu(block["mlp"]["c_fc"](block["ln_2"](x))))
        if not self.core:
            return x.mean(dim=1)
        x, pool = self.ln_post(x), self.attn_pool
        x = pool["attn"](pool.probe.expand(len(x), -1, -1), x, x, need_weights=False)[0]
        x = x + pool["mlp"]["c_proj"](F.gelu(pool["mlp"]["c_fc"](pool["layernorm"](x))))
        return x[:, 0] @ self.proj
