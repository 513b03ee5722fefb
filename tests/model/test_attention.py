import pytest
import torch
from torch import nn

from tests.reference import transformer
from tests.tiny import arrays, close
from vitrail.model.attention import SelfAttention, attention_map, relative_bias
from vitrail.model.kernels import attend
from vitrail.model.trace import MapRecorder

RELATIVE = [None, 6]


def make(relative_tokens=None, *, dtype=torch.float64, **settings) -> SelfAttention:
    module = SelfAttention(8, 2, relative_tokens=relative_tokens, **settings).to(dtype).eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def reference(module, tokens):
    w = arrays(module)
    return transformer.self_attention(
        tokens.detach().double().numpy(),
        w["qkv.weight"].T,
        w["qkv.bias"],
        w["out.weight"].T,
        w["out.bias"],
        2,
        w.get("offsets"),
    )


@pytest.mark.parametrize("relative_tokens", RELATIVE)
def test_self_attention_is_equations_5_to_8(relative_tokens) -> None:
    module, tokens = make(relative_tokens), torch.randn(3, 6, 8).double()
    close(module(tokens), reference(module, tokens)[0], 1e-11)


@pytest.mark.parametrize("relative_tokens", RELATIVE)
def test_the_attention_map_is_equation_6(relative_tokens) -> None:
    module, tokens = make(relative_tokens), torch.randn(3, 6, 8).double()
    expected = reference(module, tokens)[1]
    for heads in ([0, 1], [1, 0], [1], [0]):
        for first_only in (False, True):
            maps = MapRecorder(heads)
            mixed = module(tokens, first_only=first_only, maps=maps)
            close(maps.weights, expected[:, heads], 1e-12)
            close(maps.weights.sum(dim=-1), torch.ones(3, len(heads), 6), 1e-12)
            close(mixed, reference(module, tokens)[0][:, : 1 if first_only else 6], 1e-11)


@pytest.mark.parametrize("with_bias", [False, True])
def test_fused_and_explicit_attention_agree(with_bias) -> None:
    queries, keys, values = torch.randn(3, 2, 4, 10, 8).unbind()
    bias = torch.randn(2, 4, 10, 10) if with_bias else None
    close(attend(queries, keys, values, bias), attention_map(queries, keys, bias) @ values, 1e-5)


@pytest.mark.parametrize("relative_tokens", RELATIVE)
def test_the_first_token_alone_is_the_first_row_of_the_whole(relative_tokens) -> None:
    module, tokens = make(relative_tokens), torch.randn(3, 6, 8).double()
    whole = module(tokens)
    first = module(tokens, first_only=True)
    assert first.shape == (3, 1, 8)
    close(first, whole[:, :1], 1e-12)


@pytest.mark.parametrize("relative_tokens", RELATIVE)
def test_gradients_of_the_first_token_alone_are_those_of_the_whole(relative_tokens) -> None:
    module = make(relative_tokens)
    tokens = torch.randn(3, 6, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 8).double()
    leaves = [tokens, *module.parameters()]
    whole = torch.autograd.grad((module(tokens)[:, 0] * weight).sum(), leaves)
    first = torch.autograd.grad((module(tokens, first_only=True)[:, 0] * weight).sum(), leaves)
    for gradient, expected in zip(first, whole, strict=True):
        close(gradient, expected, 1e-11)


@pytest.mark.parametrize("queries", [1, 3, 6])
def test_the_relative_bias_scores_the_content_query_against_the_offset(queries) -> None:
    q, table = torch.randn(2, 2, queries, 4).double(), torch.randn(11, 8).double()
    bias = relative_bias(q, table, 6)
    assert bias.shape == (2, 2, queries, 6)
    for head in range(2):
        for query in range(queries):
            for key in range(6):
                offset = table[query - key + 5, head * 4 : head * 4 + 4]
                close(bias[:, head, query, key], q[:, head, query] @ offset / 2, 1e-12)


@pytest.mark.parametrize("first_only", [False, True])
def test_dropout_follows_the_last_projection_once_and_never_qkv(first_only, monkeypatch) -> None:
    module, calls = make(dropout=0.5), []
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: calls.append((self.p, x.shape[-1])) or x)
    module.train()(torch.randn(2, 6, 8).double(), first_only=first_only)
    assert calls == [(0.5, 8)]


@pytest.mark.parametrize("first_only", [False, True])
@pytest.mark.parametrize("relative_tokens", RELATIVE)
def test_attention_dropout_keeps_the_expectation_and_stops_in_evaluation(relative_tokens, first_only) -> None:
    module = make(relative_tokens, attention_dropout=0.4)
    tokens = torch.randn(1, 6, 8).double()
    still = module(tokens, first_only=first_only)
    assert torch.equal(still, module(tokens, first_only=first_only))
    many = module.train()(tokens.expand(20_000, -1, -1), first_only=first_only)
    assert many.std(dim=0).min() > 0.01
    close(many.mean(dim=0), still[0], 0.05)
