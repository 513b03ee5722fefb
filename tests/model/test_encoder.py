import pytest
import torch
from torch import nn

from tests.reference import transformer
from tests.tiny import arrays, close, images_for, perturbed, vit_config
from vitrail.model.encoder import Encoder, stochastic_depth


@pytest.mark.parametrize("positions", ["learned-1d", "relative"])
@pytest.mark.parametrize("gelu", ["tanh", "erf"])
def test_a_block_is_equations_2_and_3(positions, gelu) -> None:
    config = vit_config(positions=positions, gelu=gelu, norm_eps=1e-3)
    block, tokens = perturbed(config).double().encoder.blocks[1], torch.randn(2, 13, 32).double()
    close(block(tokens), transformer.block(tokens.numpy(), arrays(block), 4, 1e-3, gelu)[0], 1e-11)


def test_the_encoder_ends_with_a_layer_norm() -> None:
    encoder, tokens = perturbed(vit_config()).double().encoder, torch.randn(2, 13, 32).double()
    x = tokens.numpy()
    for block in encoder.blocks:
        x, _ = transformer.block(x, arrays(block), 4, 1e-6, "tanh")
    w = arrays(encoder, "norm.")
    close(encoder(tokens), transformer.layer_norm(x, w["weight"], w["bias"], 1e-6), 1e-11)


def test_the_norm_can_come_after_pooling() -> None:
    model = perturbed(vit_config(pool="mean", norm_pooled=True))
    assert model.encoder.norm is None
    images = images_for(model.config)
    pooled = model.trace(images).encoded.mean(dim=1)
    w = arrays(model.head, "norm.")
    close(
        model.features(images),
        transformer.layer_norm(pooled.detach().double().numpy(), w["weight"], w["bias"], 1e-6),
        1e-5,
    )


@pytest.mark.parametrize(
    ("placement", "tables", "added"),
    [("input", 0, [None, None, None]), ("every-layer", 3, [0, 1, 2]), ("every-layer-shared", 1, [0, 0, 0])],
)
def test_every_layer_adds_its_own_table_or_the_shared_one(placement, tables, added) -> None:
    model = perturbed(vit_config(depth=3, position_placement=placement))
    encoder, tokens = model.encoder, torch.randn(2, 13, 32)
    assert len(encoder.positions) == tables
    assert (model.embedding.positions is None) == (tables > 0)
    for layer, table in enumerate(added):
        expected = tokens if table is None else tokens + encoder.positions[table].table
        close(encoder.place(tokens, layer), expected, 0)


@pytest.mark.parametrize("first_only", [False, True])
def test_every_layer_runs_once_with_its_positions(first_only) -> None:
    encoder = perturbed(vit_config(depth=3, position_placement="every-layer")).double().encoder
    tokens = torch.randn(2, 13, 32).double()
    x = tokens.numpy()
    for block, table in zip(encoder.blocks, encoder.positions, strict=True):
        x, _ = transformer.block(x + table.table.detach().numpy(), arrays(block), 4, 1e-6, "tanh")
    w = arrays(encoder, "norm.")
    expected = transformer.layer_norm(x, w["weight"], w["bias"], 1e-6)
    close(encoder(tokens, first_only=first_only), expected[:, :1] if first_only else expected, 1e-11)


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.9])
def test_stochastic_depth_drops_whole_images_at_its_rate_and_keeps_the_mean(rate) -> None:
    branch = torch.rand(20_000, 2, 3) + 0.5
    output = stochastic_depth(branch, rate, torch.Generator().manual_seed(0))
    alive = output.flatten(1).ne(0)
    assert torch.equal(alive.any(dim=1), alive.all(dim=1))
    deviation = (rate * (1 - rate) / 20_000) ** 0.5
    assert abs(alive[:, 0].double().mean().item() - (1 - rate)) <= 4 * deviation
    close(output[alive[:, 0]], branch[alive[:, 0]] / (1 - rate), 1e-5)


def test_stochastic_depth_is_repeatable_with_a_generator() -> None:
    branch = torch.randn(64, 3, 2)
    one, other = (stochastic_depth(branch, 0.5, torch.Generator().manual_seed(seed)) for seed in (1, 1))
    assert torch.equal(one, other)
    assert not torch.equal(one, stochastic_depth(branch, 0.5, torch.Generator().manual_seed(2)))


@pytest.mark.parametrize(("depth", "rates"), [(5, [0, 0.1, 0.2, 0.3, 0.4]), (2, [0, 0.4])])
def test_the_rates_of_stochastic_depth_grow_linearly(depth, rates) -> None:
    blocks = Encoder(vit_config(depth=depth, stochastic_depth=0.4)).blocks
    assert [block.stochastic_depth for block in blocks] == pytest.approx(rates)


def test_stochastic_depth_acts_on_both_branches_and_only_while_training() -> None:
    config = vit_config(stochastic_depth=0.5, pool="mean")
    block = perturbed(config).encoder.blocks[1]
    tokens = torch.randn(1, 12, 32)
    assert torch.equal(block(tokens), block(tokens))
    outputs = block.train()(tokens.expand(64, -1, -1)).flatten(1)
    assert len({tuple(row) for row in outputs.detach().mul(1e4).round().tolist()}) == 4


@pytest.mark.parametrize("pool", ["class-token", "mean"])
def test_dropout_is_applied_where_the_paper_puts_it(pool, monkeypatch) -> None:
    config = vit_config(depth=3, dropout=0.1, pool=pool)
    model, calls = perturbed(config).train(), []
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: calls.append((self.p, tuple(x.shape[1:]))) or x)
    model(images_for(config))
    tokens = config.num_tokens
    block = [(0.1, (tokens, 32)), (0.1, (tokens, 64)), (0.1, (tokens, 32))]  # out, hidden, out
    expected = [(0.1, (tokens, 32)), *block * 3]  # after the positions, then three blocks
    if pool == "class-token":
        expected[-3:] = [(0.1, (32,)), (0.1, (1, 64)), (0.1, (1, 32))]
    assert calls == expected


def test_dropout_is_the_identity_in_evaluation() -> None:
    config = vit_config(dropout=0.5, attention_dropout=0.5, stochastic_depth=0.5)
    model, images = perturbed(config), images_for(config)
    plain = perturbed(vit_config())
    assert torch.equal(model(images), plain(images))
    assert not torch.equal(model.train()(images), plain.train()(images))
