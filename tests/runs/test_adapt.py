"""The rule for fine-tuning says what its table says."""

from dataclasses import replace
from pathlib import Path

import pytest

import vitrail
from vitrail.data.preprocessing import preset
from vitrail.model.build import configure
from vitrail.model.config import ViTConfig
from vitrail.model.family import ModelConfig
from vitrail.runs.adapt import adapt, choose_adaptation, quick_rate
from vitrail.runs.config import StartConfig
from vitrail.runs.draft import Facts
from vitrail.runs.start import Source, open_source

LARGE = configure("S/16", image_size=224, num_classes=1000)


def _facts(images: int, side: int = 300) -> Facts:
    return Facts(images=images, classes=3, channels=3, side=side)


def _source(config: ModelConfig, learned_labels: bool = True) -> Source:
    start = StartConfig(path="m.safetensors", digest="0" * 64)
    return Source(start=start, config=config, preprocessing=preset("google"), learned_labels=learned_labels)


@pytest.mark.parametrize(
    ("images", "batch", "steps", "dev"),
    [
        (20, 2, 100, 0.1),
        (244, 24, 100, 0.1),
        (2_000, 64, 250, 0.1),
        (19_999, 64, 2_500, 0.1),
        (20_000, 64, 2_500, 0.02),
        (100_000, 512, 10_000, 0.02),
        (1_281_167, 512, 10_000, 0.01),
    ],
)
def test_batch_length_and_dev_split_follow_the_rule(images: int, batch: int, steps: int, dev: float) -> None:
    chosen = choose_adaptation(_facts(images), _source(LARGE))
    assert (chosen.batch, chosen.steps, chosen.dev_fraction) == (batch, steps, dev)
    assert chosen.warmup_steps == min(steps // 10, 500)
    assert chosen.rates == (0.003, 0.01, 0.03, 0.1)


def test_a_run_keeps_the_models_numerics_and_size(tmp_path: Path) -> None:
    config = ViTConfig(dim=8, depth=1, num_heads=2, mlp_dim=8, patch_size=(4, 4), image_size=(16, 16), gelu="erf")
    vitrail.save(vitrail.build(config, seed=0), tmp_path / "m.safetensors")
    source = open_source(str(tmp_path / "m.safetensors"))
    chosen = choose_adaptation(_facts(2_000), _source(LARGE))
    draft = adapt(source, _facts(2_000), chosen, image_size=None, frozen=False)
    assert draft.model == replace(config, num_classes=3)
    assert draft.start == source.start
    assert draft.preprocessing.image_size == (16, 16)
    assert draft.augmentation.crop == "inception"
    assert (draft.optimizer.name, draft.optimizer.beta1, draft.optimizer.weight_decay) == ("sgd", 0.9, 0.0)
    larger = adapt(source, _facts(2_000, side=28), chosen, image_size=(32, 32), frozen=True)
    assert larger.model.image_size == larger.preprocessing.image_size == (32, 32)
    assert (larger.augmentation.crop, larger.augmentation.pad) == ("pad", 2)
    assert larger.optimizer.frozen == ("embedding.*", "encoder.*")


def test_the_quick_rate_is_the_middle_one() -> None:
    assert quick_rate((0.1,)) == 0.1
    assert quick_rate((0.1, 0.2, 0.3)) == 0.2
    assert quick_rate((0.003, 0.01, 0.03, 0.1)) == 0.03


SMALL = ViTConfig(dim=160, depth=6, num_heads=5, mlp_dim=320, patch_size=(8, 8), image_size=(64, 64))


@pytest.mark.parametrize(
    ("images", "batch", "steps", "rate"),
    [
        (20, 2, 300, 0.0003),
        (244, 24, 300, 0.0003),
        (4_000, 64, 500, 0.0003),
        (4_001, 64, 500, 0.001),
        (10_000, 64, 1_250, 0.001),
        (100_000, 64, 5_000, 0.001),
    ],
)
def test_small_vits_are_adapted_with_muon_at_one_rate(images: int, batch: int, steps: int, rate: float) -> None:
    chosen = choose_adaptation(_facts(images), _source(SMALL))
    assert (chosen.batch, chosen.steps, chosen.rates, chosen.image_size) == (batch, steps, (rate,), None)
    assert (chosen.optimizer.name, chosen.optimizer.weight_decay, chosen.warmup_steps) == ("muon", 0.05, steps // 10)
    assert choose_adaptation(_facts(images), _source(SMALL, learned_labels=False)).rates == (0.001,)


@pytest.mark.parametrize(("images", "mixed"), [(63, False), (64, True), (800, True), (801, False)])
def test_few_images_vary_for_small_models(images: int, mixed: bool) -> None:
    facts, draws, steps = _facts(images, side=32), {}, {}
    for name, source in {
        "with": _source(SMALL),
        "without": _source(SMALL, False),
        "large": _source(LARGE, False),
    }.items():
        chosen = choose_adaptation(facts, source)
        draft = adapt(source, facts, chosen, image_size=None, frozen=False)
        augmentation = draft.augmentation
        draws[name] = (augmentation.mixup, augmentation.cutmix, augmentation.layers, augmentation.magnitude)
        steps[name] = draft.steps
        photos = adapt(source, _facts(images), chosen, image_size=None, frozen=False)
        assert not photos.augmentation.mixes
        assert photos.steps == chosen.steps
    plain = (0, 0, 0, 0)
    varied, length = ((0.8, 1.0, 2, 5.0), 1_500) if mixed else (plain, 300)
    assert draws == {"with": varied, "without": varied, "large": plain}
    assert steps == {"with": length, "without": length, "large": 100}


@pytest.mark.parametrize(("objective", "labels"), [("classification", True), ("mae", False), (None, True)])
def test_a_file_states_whether_its_model_learned_from_labels(
    objective: str | None, labels: bool, tmp_path: Path
) -> None:
    provenance = {} if objective is None else {"config": {"objective": {"kind": objective}}}
    vitrail.save(vitrail.build(SMALL, seed=0), tmp_path / "m.safetensors", provenance=provenance)
    assert open_source(str(tmp_path / "m.safetensors")).learned_labels is labels


def test_the_size_of_a_model_decides_between_the_rules_and_resnets_follow_the_paper() -> None:
    by_name = {name: configure(name, image_size=224, num_classes=1000) for name in ("Ti/16", "S/16", "R50x1")}
    chosen = {
        name: choose_adaptation(_facts(2_000), _source(config)).optimizer.name for name, config in by_name.items()
    }
    assert chosen == {"Ti/16": "muon", "S/16": "sgd", "R50x1": "sgd"}  # 5.7, 22 and 25 million parameters
