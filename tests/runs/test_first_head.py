"""The first head of fine-tuning with few labels: the regression that scikit-learn finds on the same features."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import vitrail
from tests.tiny import hybrid_config, perturbed, resnet_config, vit_config
from tests.training.making import CLASSES, SIZE, made_archive, made_dataset
from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.base.settings import from_dict
from vitrail.data.dataset import UNLABELLED
from vitrail.data.preprocessing import Preprocessing, preset
from vitrail.data.transforms import normalise, preprocess
from vitrail.model.build import configure
from vitrail.model.family import ModelConfig
from vitrail.runs.adapt import choose_adaptation
from vitrail.runs.config import StartConfig
from vitrail.runs.draft import Facts
from vitrail.runs.first_head import MOST_IMAGES, STRENGTH, fit_head
from vitrail.runs.start import Source

PIXELS = Preprocessing(image_size=SIZE)
TINY = vit_config(image_size=SIZE, patch_size=(2, 2), num_classes=len(CLASSES))


@pytest.mark.parametrize("config", [TINY, resnet_config(image_size=(32, 32), num_classes=len(CLASSES))])
def test_the_head_is_the_regression_on_whitened_features(config: ModelConfig) -> None:
    model, dataset = perturbed(config).train(), made_dataset(60)
    pixels = replace(PIXELS, image_size=config.image_size)
    fit_head(model, dataset, pixels, Ranks(), None)
    assert model.training
    model.eval()
    images = [preprocess(dataset.image(row), pixels) for row in range(60)]
    inputs = normalise(torch.stack(images), pixels)
    with torch.no_grad():
        features, logits = model.features(inputs).double().numpy(), model(inputs).numpy()
    whitened = (features - features.mean(0)) / (features.std(0) + 1e-5)
    oracle = LogisticRegression(C=STRENGTH, tol=1e-9, max_iter=10_000).fit(whitened, dataset.targets)
    wanted = oracle.decision_function(whitened)
    np.testing.assert_allclose(
        logits - logits.mean(1, keepdims=True), wanted - wanted.mean(1, keepdims=True), atol=2e-3
    )


def test_images_without_a_label_are_left_out() -> None:
    dataset = made_dataset(30)
    hidden = np.where(np.arange(60) < 30, np.tile(dataset.targets, 2), UNLABELLED)
    more = replace(made_dataset(60), targets=hidden)
    one, other = perturbed(TINY), perturbed(TINY)
    fit_head(one, made_dataset(60).take(np.arange(30)), PIXELS, Ranks(), None)
    fit_head(other, more, PIXELS, Ranks(), None)
    assert torch.equal(one.last_linear.weight, other.last_linear.weight)
    nothing = perturbed(TINY)
    before = nothing.last_linear.weight.clone()
    fit_head(nothing, replace(more, targets=np.full(60, UNLABELLED)), PIXELS, Ranks(), None)
    assert torch.equal(nothing.last_linear.weight, before)


def test_the_rule_takes_it_for_small_models_and_few_images() -> None:
    few, many = (Facts(images=count, classes=3, channels=3, side=64) for count in (MOST_IMAGES, MOST_IMAGES + 1))
    small, large = hybrid_config(), configure("B/16", image_size=224, num_classes=10)
    start = StartConfig(path="m.safetensors", digest="0" * 64)
    sources = [Source(start=start, config=config, preprocessing=preset("google")) for config in (small, large)]
    heads = [choose_adaptation(facts, source).head for facts in (few, many) for source in sources]
    assert heads == ["regression", "zeros", "zeros", "zeros"]


def test_another_head_is_refused() -> None:
    with pytest.raises(ConfigError, match="head must be one of zeros, regression, not 'probe'"):
        from_dict(StartConfig, {"path": "m", "digest": "0", "head": "probe"})


def test_fine_tuning_begins_with_it_and_repeats_bit_by_bit(tmp_path: Path) -> None:
    data, start = made_archive(tmp_path / "made.npz"), tmp_path / "m.safetensors"
    vitrail.save(perturbed(replace(TINY, num_classes=0)), start)
    common = {"start": start, "steps": 6, "batch": 6, "quiet": True, "settings": {"execution.checkpoint_every": 2}}
    whole = vitrail.finetune(data, **common, out=tmp_path / "whole")
    assert whole.config.start.head == "regression"
    zeros = vitrail.finetune(data, **common | {"settings": {"start.head": "zeros"}}, out=tmp_path / "zeros")
    assert zeros.config.start.head == "zeros"
    assert not torch.equal(whole.model.last_linear.weight, zeros.model.last_linear.weight)
    again = vitrail.finetune(data, **common, out=tmp_path / "again")
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name
