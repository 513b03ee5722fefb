import numpy as np
import pytest
import torch

from tests.reference import transformer
from tests.tiny import arrays, close, images_for, perturbed, vit_config


@pytest.mark.parametrize("gelu", ["tanh", "erf"])
def test_attention_pooling_is_one_learned_query_and_an_mlp(gelu) -> None:
    model = perturbed(vit_config(pool="attention", gelu=gelu)).double()
    tokens = torch.randn(3, 12, 32).double()
    expected = transformer.attention_pool(tokens.numpy(), arrays(model.head.pool), 4, 1e-6, gelu)
    close(model.head.represent(tokens), expected, 1e-11)


@pytest.mark.parametrize(("class_token", "first"), [(False, 0), (True, 1)])
def test_the_mean_is_over_patch_tokens_only(class_token, first) -> None:
    model = perturbed(vit_config(pool="mean", class_token=class_token))
    tokens = torch.randn(3, 12 + class_token, 32)
    close(model.head.represent(tokens), tokens.numpy()[:, first:].mean(axis=1), 1e-6)


def test_the_class_token_is_the_first() -> None:
    tokens = torch.randn(3, 13, 32)
    close(perturbed(vit_config()).head.represent(tokens), tokens[:, 0], 0)


@pytest.mark.parametrize("pool", ["class-token", "mean", "attention"])
def test_the_representation_layer_ends_with_tanh(pool) -> None:
    config = vit_config(representation_size=20, pool=pool)
    model, plain = perturbed(config).double(), perturbed(vit_config(pool=pool)).double()
    tokens = torch.randn(3, config.num_tokens, 32).double()
    w = arrays(model.head)
    plain.head.pool = model.head.pool
    pooled = plain.head.represent(tokens).detach().numpy()
    hidden = np.tanh(pooled @ w["representation.weight"].T + w["representation.bias"])
    close(model.head.represent(tokens), hidden, 1e-12)


@pytest.mark.parametrize("settings", [{}, {"representation_size": 20}, {"pool": "mean"}])
def test_logits_are_a_linear_layer_on_the_features(settings) -> None:
    config = vit_config(**settings)
    model, images = perturbed(config).double(), images_for(config).double()
    w = arrays(model.head)
    features = model.features(images)
    assert features.shape == (2, config.representation_size or 32)
    close(model(images), features.detach().numpy() @ w["linear.weight"].T + w["linear.bias"], 1e-12)


def test_without_classes_the_features_are_the_answer() -> None:
    model = perturbed(vit_config(num_classes=0))
    images = images_for(model.config)
    assert model.head.linear is None
    close(model(images), model.features(images), 0)
    close(model.trace(images).logits, model.features(images), 1e-5)
