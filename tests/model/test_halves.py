import pytest
import torch

from tests.tiny import close, images_for, perturbed, vit_config
from vitrail.model import attention, halves, mlp
from vitrail.model.attention import SelfAttention
from vitrail.model.mlp import Mlp

pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture
def calls(monkeypatch):
    """Count what ran in halves."""
    counted = {"attention": 0, "mlp": 0}

    def counting(name, function):
        def call(*arguments):
            counted[name] += 1
            return function(*arguments)

        return call

    monkeypatch.setattr(attention, "attention_in_halves", counting("attention", halves.attention_in_halves))
    monkeypatch.setattr(mlp, "mlp_in_halves", counting("mlp", halves.mlp_in_halves))
    return counted


@pytest.mark.parametrize("kind", ["tanh", "erf"])
@pytest.mark.parametrize("shape", [(1, 5, 16), (3, 7, 16), (2, 400, 16)])
def test_the_mlp_in_halves_is_the_mlp(kind, shape) -> None:
    module, tokens = Mlp(16, 24, gelu=kind).eval(), torch.randn(shape)
    plain = module(tokens)
    with torch.no_grad():
        close(halves.mlp_in_halves(tokens, module.hidden, module.out, kind), plain, 1e-5)


@pytest.mark.parametrize("num_heads", [2, 4])
@pytest.mark.parametrize("shape", [(1, 5, 16), (3, 7, 16)])
def test_attention_in_halves_is_attention(num_heads, shape) -> None:
    module, tokens = SelfAttention(16, num_heads).eval(), torch.randn(shape)
    plain = module(tokens)
    with torch.no_grad():
        close(halves.attention_in_halves(tokens, module.qkv, module.out, num_heads), plain, 1e-5)


@pytest.mark.parametrize("settings", [{}, {"pool": "mean"}, {"pool": "attention", "gelu": "erf"}])
def test_a_model_in_halves_is_the_model(settings, calls) -> None:
    config = vit_config(depth=3, **settings)
    model, images = perturbed(config), images_for(config, 3)
    plain = model(images)
    assert calls == {"attention": 0, "mlp": 0}
    with torch.inference_mode():
        close(model(images), plain, 1e-5)
    first_only = config.pool == "class-token"
    assert calls["attention"] == 3 - first_only
    assert calls["mlp"] == 3 + (config.pool == "attention")


def test_halves_do_not_change_their_input() -> None:
    tokens = torch.randn(2, 5, 16)
    before = tokens.clone()
    with torch.no_grad():
        Mlp(16, 24).eval()(tokens)
        SelfAttention(16, 2).eval()(tokens)
    assert torch.equal(tokens, before)


@pytest.mark.parametrize(
    ("change", "pays"),
    [
        ({}, True),
        ({"even": 3}, False),
        ({"dtype": torch.float64}, False),
        ({"dtype": torch.bfloat16}, False),
        ({"threads": 1}, False),
        ({"grad": True}, False),
        ({"device": "meta"}, False),
        ({"most_rows": 2}, True),
        ({"most_rows": 1}, False),
    ],
)
def test_halves_are_taken_only_where_they_are_right_and_faster(change, pays) -> None:
    torch.set_num_threads(change.get("threads", 2))
    tokens = torch.empty(1, 2, 4, dtype=change.get("dtype"), device=change.get("device"))
    with torch.set_grad_enabled(change.get("grad", False)):
        assert halves.halves_pay(tokens, even=change.get("even", 4), most_rows=change.get("most_rows")) is pays


def test_attention_is_split_only_while_the_batch_is_small(calls) -> None:
    config = vit_config(depth=1, pool="mean", image_size=(64, 64))
    model, images = perturbed(config), images_for(config, 3)
    plain = model(images)
    with torch.inference_mode():
        close(model(images), plain, 1e-5)
        assert calls == {"attention": 0, "mlp": 1}
        model(images[:2])
        assert calls == {"attention": 1, "mlp": 2}


def test_dropout_is_applied_without_gradients_too(calls) -> None:
    config = vit_config(dropout=0.5)
    model = perturbed(config).train()
    with torch.no_grad():
        one, other = model(images_for(config)), model(images_for(config))
    assert not torch.equal(one, other)
    assert calls == {"attention": 0, "mlp": 0}
