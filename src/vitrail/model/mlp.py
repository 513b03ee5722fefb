"""The MLP of an encoder block: two layers with a GELU between (Sec. 3.1), or SwiGLU."""

import torch.nn.functional as F
from torch import nn

from vitrail.base.products import Linear
from vitrail.base.shapes import Tokens
from vitrail.model import kernels
from vitrail.model.config import ViTConfig
from vitrail.model.gelu import Gelu
from vitrail.model.trace import Take
from vitrail.model.units import Unit


class Mlp(nn.Module):
    """MLP(z) = GELU(z W_1 + b_1) W_2 + b_2."""

    def __init__(self, dim: int, mlp_dim: int, *, gelu: Gelu = "tanh", dropout: float = 0.0) -> None:
        super().__init__()
        self.gelu = gelu
        self.hidden = Linear(dim, mlp_dim)
        self.out = Linear(mlp_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tokens, *, units: Take | None = None) -> Tokens:
        """Transform each token by itself; `units` takes the hidden activations."""
        hidden = self.dropout(kernels.activate(self.hidden(tokens), self.gelu))
        if units is not None:
            units(hidden)
        return self.dropout(self.out(hidden))


class SwiGlu(nn.Module):
    """MLP(z) = (SiLU(z W_g + b_g) * (z W_1 + b_1)) W_2 + b_2."""

    def __init__(self, dim: int, mlp_dim: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = Linear(dim, mlp_dim)
        self.hidden = Linear(dim, mlp_dim)
        self.out = Linear(mlp_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tokens, *, units: Take | None = None) -> Tokens:
        """Transform each token by itself; `units` takes the hidden activations."""
        hidden = self.dropout(F.silu(self.gate(tokens)) * self.hidden(tokens))
        if units is not None:
            units(hidden)
        return self.dropout(self.out(hidden))


def make_mlp(config: ViTConfig) -> Mlp | SwiGlu:
    """Build the MLP of a block."""
    if config.mlp == "swiglu":
        return SwiGlu(config.dim, config.mlp_dim, dropout=config.dropout)
    return Mlp(config.dim, config.mlp_dim, gelu=config.gelu, dropout=config.dropout)


def mlp_cost(config: ViTConfig) -> Unit:
    """Count the layers; the input and the hidden layer before and after GELU are kept, and masks of dropout.

    SwiGLU keeps the gate before and after SiLU beside what it gates, and their product.
    """
    wide, hidden = config.num_tokens * config.dim, config.num_tokens * config.mlp_dim
    masks = wide + hidden if config.dropout else 0
    layers, buffers = (3, 4) if config.mlp == "swiglu" else (2, 2)
    return Unit(macs=layers * wide * config.mlp_dim, activations=wide + buffers * hidden + masks)
