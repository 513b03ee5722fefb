"""The MLP of an encoder block: two layers with a GELU between (Sec. 3.1)."""

from torch import nn

from vitrail.base.shapes import Tokens
from vitrail.model import kernels
from vitrail.model.config import ViTConfig
from vitrail.model.gelu import Gelu
from vitrail.model.units import Unit


class Mlp(nn.Module):
    """MLP(z) = GELU(z W_1 + b_1) W_2 + b_2."""

    def __init__(self, dim: int, mlp_dim: int, *, gelu: Gelu = "tanh", dropout: float = 0.0) -> None:
        super().__init__()
        self.gelu = gelu
        self.hidden = nn.Linear(dim, mlp_dim)
        self.out = nn.Linear(mlp_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tokens) -> Tokens:
        """Transform each token by itself."""
        hidden = self.dropout(kernels.activate(self.hidden(tokens), self.gelu))
        return self.dropout(self.out(hidden))


def mlp_cost(config: ViTConfig) -> Unit:
    """Count the two layers; the input and the hidden layer before and after GELU are kept, and masks of dropout."""
    wide, hidden = config.num_tokens * config.dim, config.num_tokens * config.mlp_dim
    masks = wide + hidden if config.dropout else 0
    return Unit(macs=2 * wide * config.mlp_dim, activations=wide + 2 * hidden + masks)
