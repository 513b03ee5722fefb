"""Recipes without labels: the paper's numbers, and small twins that are runs of the same objective."""

from dataclasses import replace

import pytest

from vitrail.base.errors import ConfigError
from vitrail.recipes.names import find_pretraining, find_recipe
from vitrail.recipes.selfsup import SELFSUP
from vitrail.runs.draft import Draft, Facts
from vitrail.selfsup.mae import DecoderConfig

FACTS = Facts(images=50_000, classes=0, channels=3, side=32)


def test_the_papers_run_has_the_papers_numbers() -> None:
    draft = find_pretraining("masked-patch-B/16", None)(FACTS)
    assert (draft.batch, draft.steps, draft.schedule.peak) == (4096, 1_000_000, 2e-4)
    assert (draft.schedule.shape, draft.schedule.warmup_steps) == ("cosine", 10_000)
    assert (draft.optimizer.name, draft.optimizer.beta1, draft.optimizer.beta2) == ("adam", 0.9, 0.999)
    assert (draft.objective.rate, draft.objective.target) == (0.5, "mean-colour")
    assert (draft.model.dim, draft.model.depth, draft.model.patch_size) == (768, 12, (16, 16))
    assert draft.model.num_classes == 0
    assert draft.batch * draft.steps / 300e6 == pytest.approx(14, abs=0.4)  # epochs of JFT-300M


def test_the_published_autoencoder_has_its_numbers() -> None:
    draft = find_pretraining("mae-B/16", "mae")(FACTS)
    assert (draft.batch, draft.schedule.peak, draft.optimizer.weight_decay) == (4096, 2.4e-3, 0.05)
    assert (draft.objective.rate, draft.objective.decoder.dim, draft.objective.decoder.depth) == (0.75, 512, 8)
    assert draft.steps * 4096 / 1_281_167 == pytest.approx(1600, rel=0.01)
    assert draft.schedule.warmup_steps * 4096 / 1_281_167 == pytest.approx(40, rel=0.01)


def test_small_autoencoders_are_wider_decode_with_one_block_of_half_the_width_and_have_slower_blocks() -> None:
    for draft in (find_pretraining("mae-cifar10", None)(FACTS), find_pretraining(None, "mae")(FACTS)):
        assert (draft.model.dim, draft.model.num_heads, draft.model.mlp_dim) == (192, 6, 384)
        assert draft.objective.decoder == DecoderConfig(dim=96, depth=1, num_heads=3, mlp_dim=192)
        assert _rates(draft) == pytest.approx((0.008, 0.002))
    many = find_pretraining(None, "mae")(replace(FACTS, images=200_000))
    masked = [find_pretraining(name, "masked-patch")(FACTS) for name in (None, "masked-patch-cifar10")]
    for draft, dim in ((many, 384), *((draft, 128) for draft in masked)):
        assert _rates(draft) == pytest.approx((0.02, 0.002))
        assert draft.model.dim == dim


def _rates(draft: Draft) -> tuple[float, float]:
    """Return the rate of Muon and that of Adam."""
    peak, optimizer = draft.schedule.peak, draft.optimizer
    return optimizer.muon_rate * peak, optimizer.rest_rate * peak


@pytest.mark.parametrize("name", SELFSUP)
def test_a_recipe_and_its_twin_are_the_same_kind_of_run(name: str) -> None:
    whole, small = find_pretraining(name, None)(FACTS), find_pretraining(f"{name}-smoke", None)(FACTS)
    assert whole.objective == small.objective
    assert (small.steps, small.batch, small.model.image_size) == (6, 8, (32, 32))
    whole.objective.check(whole.model, [])
    small.objective.check(small.model, [])


def test_recipes_go_to_their_own_verbs() -> None:
    with pytest.raises(ConfigError, match="give it to pretrain as `recipe`"):
        find_recipe("mae-cifar10")
    with pytest.raises(ConfigError, match="is a recipe that needs labels"):
        find_pretraining("imagenet1k-B/16", None)
    with pytest.raises(ConfigError, match="is for `objective` 'mae', not 'masked-patch'"):
        find_pretraining("mae-cifar10", "masked-patch")
    with pytest.raises(ConfigError, match=r"there is no recipe 'mae-cifar'.*Did you mean mae-cifar10"):
        find_pretraining("mae-cifar", None)
    with pytest.raises(ConfigError, match="is for images of 32x32, but `image_size` is 64x64"):
        find_pretraining("mae-cifar10", None, (64, 64))
