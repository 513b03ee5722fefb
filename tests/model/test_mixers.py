"""A block takes whatever mixer it is given."""

from typing import Any

import torch
from torch import Tensor, nn

from tests.reference import transformer
from tests.tiny import arrays, close, vit_config
from vitrail.model import encoder as encoder_module
from vitrail.model.attention import SelfAttention
from vitrail.model.encoder import Encoder
from vitrail.model.mixers import make_mixer


class MeanMixer(nn.Module):
    """Every token gets the mean of all."""

    def forward(self, tokens: Tensor, *, first_only: bool = False, **_: Any) -> Tensor:
        return tokens.mean(dim=1, keepdim=True).expand(-1, 1 if first_only else tokens.shape[1], -1)


def test_every_block_attends_by_itself() -> None:
    config = vit_config(positions="relative", dropout=0.1, attention_dropout=0.2)
    mixer = make_mixer(config, 0)
    assert isinstance(mixer, SelfAttention)
    assert (mixer.num_heads, mixer.dropout.p, mixer.attention_dropout) == (4, 0.1, 0.2)
    assert mixer.offsets.shape == (2 * config.num_tokens - 1, 32)


def test_a_layer_can_have_another_mixer(monkeypatch) -> None:
    plain = encoder_module.make_mixer
    monkeypatch.setattr(
        encoder_module, "make_mixer", lambda config, layer: MeanMixer() if layer == 1 else plain(config, layer)
    )
    encoder, tokens = Encoder(vit_config()).double().eval(), torch.randn(2, 13, 32).double()
    x, _ = transformer.block(tokens.numpy(), arrays(encoder.blocks[0]), 4, 1e-6, "tanh")
    w = arrays(encoder.blocks[1])
    normed = transformer.layer_norm(x, w["norm1.weight"], w["norm1.bias"], 1e-6)
    x = x + normed.mean(axis=1, keepdims=True)
    normed = transformer.layer_norm(x, w["norm2.weight"], w["norm2.bias"], 1e-6)
    hidden, out = w["mlp.hidden.weight"].T, w["mlp.out.weight"].T
    x = x + transformer.mlp(normed, hidden, w["mlp.hidden.bias"], out, w["mlp.out.bias"], "tanh")
    norm = arrays(encoder, "norm.")
    expected = transformer.layer_norm(x, norm["weight"], norm["bias"], 1e-6)
    close(encoder(tokens), expected, 1e-10)
    close(encoder(tokens, first_only=True), expected[:, :1], 1e-10)
