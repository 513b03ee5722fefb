import pytest
import torch
from torch import nn

from tests.reference import positions, transformer
from tests.tiny import arrays, close, hybrid_config, images_for, perturbed, vit_config


def table_of(embedding, kind):
    w = arrays(embedding, "positions.")
    if kind == "learned-1d":
        return w["table"]
    grid = positions.learned_2d(w["x"], w["y"]) if kind == "learned-2d" else positions.sincos_2d(32, (3, 4))
    first = w.get("class_entry", 0 * grid[:1])
    return torch.cat([torch.tensor(first), torch.tensor(grid)]).numpy()


@pytest.mark.parametrize("kind", ["learned-1d", "learned-2d", "sincos-2d"])
def test_the_embedding_is_equation_1(kind) -> None:
    config = vit_config(positions=kind)
    embedding, images = perturbed(config).embedding, images_for(config)
    w = arrays(embedding)
    patches = transformer.patchify(images.double().numpy(), (4, 4))
    expected = transformer.embed(
        patches, w["projection.weight"].T, w["projection.bias"], w["class_token"], table_of(embedding, kind)
    )
    close(embedding(images), expected, 1e-5)


@pytest.mark.parametrize("settings", [{"positions": "none"}, {"positions": "relative"}])
def test_nothing_is_added_when_positions_are_elsewhere(settings) -> None:
    config = vit_config(pool="mean", **settings)
    embedding, images = perturbed(config).embedding, images_for(config)
    w = arrays(embedding)
    patches = transformer.patchify(images.double().numpy(), (4, 4))
    close(embedding(images), transformer.embed(patches, w["projection.weight"].T, w["projection.bias"]), 1e-5)


def test_the_class_token_comes_first_and_has_a_position() -> None:
    config = vit_config()
    embedding = perturbed(config).embedding
    tokens = embedding(images_for(config))
    expected = embedding.class_token[0] + embedding.positions.table[0]
    close(tokens[:, 0], expected.expand(2, -1), 1e-6)


@pytest.mark.parametrize(
    ("config", "inputs"),
    [
        (vit_config(channels=5, patch_size=(3, 8)), 5 * 3 * 8),
        (vit_config(channels=1), 16),
        (hybrid_config(), 8 * 4 * 2),
    ],
)
def test_the_projection_reads_a_whole_patch(config, inputs) -> None:
    assert perturbed(config).embedding.projection.weight.shape == (32, inputs)


def test_dropout_comes_once_directly_after_the_positions(monkeypatch) -> None:
    config = vit_config(dropout=0.25)
    embedding, calls = perturbed(config).embedding.train(), []
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: calls.append((self.p, x)) or x)
    tokens = embedding(images_for(config))
    [(rate, dropped)] = calls
    assert rate == 0.25
    assert dropped is tokens
