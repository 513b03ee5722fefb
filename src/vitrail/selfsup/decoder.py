"""MAE's light decoder: tokens of visible patches and a mask token for each removed one -> pixels of the removed.

encoder's tokens -> Linear -> [mask] in the gaps -> + positions -> blocks -> norm -> Linear -> P x P x C values
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from vitrail.base.products import Linear, linear
from vitrail.base.shapes import KeptTokens
from vitrail.model import kernels
from vitrail.model.attention import SelfAttention
from vitrail.model.config import ViTConfig
from vitrail.model.encoder import Encoder, EncoderBlock
from vitrail.model.init import rule
from vitrail.model.patches import Size
from vitrail.model.positions import sincos_2d

Order = Int[Tensor, "batch patch"]
"""Every patch of each image by number: first the visible, then the removed."""
Removed = Float[Tensor, "batch removed pixels"]


class LastBlock(EncoderBlock):
    """The decoder's last block, which transforms only the tokens that are read: those of the removed patches."""

    def forward(self, tokens: KeptTokens, *, first: int) -> Float[Tensor, "batch removed dim"]:  # type: ignore[override]
        """Map z_(l-1) to the tokens of z_l from number `first` on, which attend to all."""
        attention, normed = self.attention, self.norm1(tokens)
        assert isinstance(attention, SelfAttention)  # noqa: S101 - the decoder has no other mixer
        dim, heads = tokens.shape[2], (attention.num_heads, -1)
        kernel, bias = attention.qkv.weight, attention.qkv.bias
        queries = linear(normed[:, first:], kernel[:dim], bias[:dim]).unflatten(2, heads)
        keys, values = linear(normed, kernel[dim:], bias[dim:]).unflatten(2, (2, *heads)).unbind(2)
        mixed = kernels.attend(queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2))
        kept = tokens[:, first:] + attention.out(mixed.transpose(1, 2).flatten(2))  # Eq. 2
        return kept + self.mlp(self.norm2(kept))  # Eq. 3


class Decoder(nn.Module):
    """A few blocks of a Vision Transformer behind the encoder."""

    positions: Tensor

    def __init__(self, config: ViTConfig, width: int, outputs: int) -> None:
        super().__init__()
        self.grid, self.class_token = config.grid, bool(config.class_token)
        self.embed = Linear(width, config.dim)
        self.mask = nn.Parameter(torch.empty(1, config.dim))
        self.encoder = Encoder(config)
        self.encoder.blocks[-1] = LastBlock(config, config.depth - 1)
        self.predictor = Linear(config.dim, outputs)
        self.register_buffer("positions", self.table(config.grid), persistent=False)
        for name, parameter in self.encoder.named_parameters():
            rule(f"encoder.{name}")(parameter, None)
        for layer in (self.embed, self.predictor):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.mask, std=0.02)

    def forward(self, tokens: KeptTokens, order: Order, grid: Size) -> Removed:
        """Predict the removed patches; `tokens` are the class token, if there is one, and the visible patches."""
        first = int(self.class_token)
        shown = self.embed(tokens)
        visible = shown.shape[1] - first
        gaps = self.mask.to(shown.dtype).expand(shown.shape[0], order.shape[1] - visible, -1)
        shuffled = torch.cat([shown[:, first:], gaps], dim=1)
        table = self.positions if grid == self.grid else self.table(grid).to(shown.device)
        # Attention does not ask for an order: positions follow the patches, and nothing is moved back.
        tokens = torch.cat([shown[:, :first] + table[:first], shuffled + table[first:][order]], dim=1)
        *blocks, last = self.encoder.blocks
        for block in blocks:
            tokens = block(tokens)
        return self.predictor(self.encoder.finish(last(tokens, first=first + visible)))

    def table(self, grid: Size) -> Float[Tensor, "token dim"]:
        """Return fixed positions: sines and cosines of rows and columns, zero for the class token."""
        return sincos_2d(self.mask.shape[1], grid, class_entry=self.class_token)

    def matrices(self) -> dict[str, int]:
        """Name the kernels of the blocks; q, k and v are three in one."""
        stacked = {"attention.qkv.weight": 3, "attention.out.weight": 1, "mlp.hidden.weight": 1, "mlp.out.weight": 1}
        blocks = range(len(self.encoder.blocks))
        return {f"encoder.blocks.{number}.{name}": parts for number in blocks for name, parts in stacked.items()}


def patch_norm(pixels: Float[Tensor, "batch some pixels"]) -> Float[Tensor, "batch some pixels"]:
    """Subtract each patch's mean and divide by sqrt(var + 1e-6), over all pixels and channels; var is unbiased.

    With n values and the biased variance v of a layer norm, var = v n / (n - 1): a layer norm with a smaller epsilon,
    times sqrt((n - 1) / n), is the same in one pass.
    """
    values = pixels.shape[2]
    shrunk = (values - 1) / values
    return F.layer_norm(pixels, (values,), eps=1e-6 * shrunk) * shrunk**0.5
