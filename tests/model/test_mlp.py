import pytest
import torch
from torch import nn

from tests.reference import transformer
from tests.tiny import arrays, close
from vitrail.model.mlp import Mlp


def make(**settings) -> Mlp:
    module = Mlp(8, 12, **settings).double().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


@pytest.mark.parametrize("kind", ["tanh", "erf"])
def test_the_mlp_is_two_layers_with_a_gelu_between(kind) -> None:
    module, tokens = make(gelu=kind), torch.randn(2, 5, 8).double()
    w = arrays(module)
    expected = transformer.mlp(
        tokens.numpy(), w["hidden.weight"].T, w["hidden.bias"], w["out.weight"].T, w["out.bias"], kind
    )
    close(module(tokens), expected, 1e-11)


def test_dropout_follows_both_layers_while_training(monkeypatch) -> None:
    module, calls = make(dropout=0.5), []
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: calls.append((self.p, x.shape[-1])) or x)
    module.train()(torch.randn(1, 2, 8).double())
    assert calls == [(0.5, 12), (0.5, 8)]


def test_dropout_is_the_identity_in_evaluation() -> None:
    module, tokens = make(dropout=0.5), torch.randn(2, 5, 8).double()
    assert torch.equal(module(tokens), module(tokens))
    plain = make()
    plain.load_state_dict(module.state_dict())
    assert torch.equal(module(tokens), plain(tokens))
