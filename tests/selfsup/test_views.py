"""DINO and MoCo v3 as learners: what moves and what stays, resumed to the last bit, what is saved, what is refused."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.reference import views as reference
from tests.runs.test_conduct import _Heard
from tests.selfsup.views import OBJECTIVES, views_config, views_run
from tests.training.making import StopAfter, assert_same, made_loop, weights
from vitrail.base.errors import ConfigError
from vitrail.base.lines import read_rows
from vitrail.base.settings import from_dict, to_dict
from vitrail.checkpoint.files import load
from vitrail.data.augment.settings import Augmentation
from vitrail.model.build import build, configure
from vitrail.runs.conduct import conduct
from vitrail.runs.config import RunConfig, Stage
from vitrail.runs.execution import Execution
from vitrail.selfsup.dino import Dino, DinoConfig
from vitrail.selfsup.dino_head import DinoHead
from vitrail.selfsup.dino_loss import temperature_at
from vitrail.selfsup.moco import Moco, MocoConfig
from vitrail.selfsup.momentum import momentum_at
from vitrail.training.endings import StoppedError
from vitrail.training.loop import Loop
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.signals import StopSignal

KINDS = tuple(OBJECTIVES)


def made(folder: Path, kind: str, **changes) -> Loop:
    return made_loop(views_run(folder, views_config(kind, **changes)))


def dino_of(loop: Loop) -> Dino:
    assert isinstance(loop.state.learner, Dino)
    return loop.state.learner


@pytest.mark.parametrize("kind", KINDS)
def test_every_large_view_of_a_stage_has_its_size(tmp_path: Path, kind: str) -> None:
    config = views_config(kind, stages=(Stage(until=0.5, image_size=(4, 4)),))
    batches = views_run(tmp_path, config).batches(0)
    sides = [{view.shape[2] for view in batch.views[:2]} for batch in islice(batches, config.steps)]
    half = round(0.5 * config.steps)
    assert sides == [{4}] * half + [{config.model.image_size[0]}] * (config.steps - half)


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_and_resumed_it_ends_with_the_same_bits(tmp_path: Path, kind: str) -> None:
    straight = made(tmp_path / "straight", kind)
    straight.run()
    for looks in (2, 3):
        run = views_run(tmp_path / "stopped", views_config(kind))
        with pytest.raises(StoppedError):
            made_loop(run, resume=True, stop=StopAfter(looks)).run()
    resumed = made_loop(views_run(tmp_path / "stopped", views_config(kind)), resume=True)
    assert 0 < resumed.state.progress.step < 10
    resumed.run()
    assert_same(weights(resumed), weights(straight))
    assert read_rows(tmp_path / "stopped" / "metrics.jsonl") == read_rows(tmp_path / "straight" / "metrics.jsonl")


@pytest.mark.parametrize("kind", KINDS)
def test_settings_survive_json(kind: str) -> None:
    config = views_config(kind)
    assert from_dict(RunConfig, to_dict(config)) == config


def test_dino_saves_its_teacher_and_moco_its_encoder(tmp_path: Path) -> None:
    for kind in KINDS:
        run = views_run(tmp_path / kind, views_config(kind))
        conduct(run, _Heard(), StopSignal())
        twin = made(tmp_path / f"{kind}-twin", kind)
        twin.run()
        learner = twin.state.learner
        chosen = learner.teacher if isinstance(learner, Dino) else learner.model
        assert isinstance(chosen, torch.nn.Module)
        assert_same(dict(load(run.folder.model).state_dict()), dict(chosen.state_dict()))
        assert learner.saved is chosen


def test_the_first_loss_of_dino_is_numpys(tmp_path: Path) -> None:
    loop = made(tmp_path, "dino")
    learner, batch = dino_of(loop), next(loop.batches(0))
    assert [tuple(view.shape[2:]) for view in batch.views] == [(8, 8)] * 2 + [(4, 4)] * 3
    images = [(view.double() / 255 - 0.5) / 0.5 for view in batch.views]
    with torch.no_grad():
        learner.centre.normal_(std=0.1)
        student = [learner.head(learner.model.features(view.float(), any_size=True)).numpy() for view in images]
        teacher = [learner.teacher_head(learner.teacher.features(view.float())).numpy() for view in images[:2]]
    expected = reference.dino_loss(np.stack(student), np.stack(teacher), learner.centre.numpy(), 0.1, 0.04)
    loss, sums = learner(batch)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    answers = np.stack([reference.softmax((scores - learner.centre.numpy()) / 0.04) for scores in teacher])
    single = -(answers * np.log(answers)).sum(-1).mean() / np.log(24)
    mean = answers.mean((0, 1))
    assert sums["teacher_entropy"].item() / 8 == pytest.approx(single, rel=1e-4)
    assert sums["mean_entropy"].item() / 8 == pytest.approx(-(mean * np.log(mean)).sum() / np.log(24), rel=1e-4)
    assert 0 < sums["feature_spread"].item() / 8 < 1


def test_the_teacher_and_the_centre_follow_their_rules(tmp_path: Path) -> None:
    loop = made(tmp_path, "dino")
    learner, batches = dino_of(loop), loop.batches(0)
    centre = np.zeros(24)
    expected = [weight.detach().double().clone() for weight in learner.teacher.parameters()]
    for step in range(4):
        batch = next(batches)
        images = torch.cat([(view.float() / 255 - 0.5) / 0.5 for view in batch.views[:2]])
        with torch.no_grad():
            scores = learner.teacher_head(learner.teacher.features(images)).double().numpy()
        loop.state.progress.step = step
        assert loop.take(batch, 0.1) is not None
        assert learner.temperature == temperature_at(0.04, 0.07, 0.1, step / 10)
        centre = 0.9 * centre + 0.1 * scores.mean(0)
        np.testing.assert_allclose(learner.centre.numpy(), centre, rtol=1e-4, atol=1e-6)
        keeps = momentum_at(0.9, step / 10)
        expected = [
            keeps * slow + (1 - keeps) * quick.detach().double()
            for slow, quick in zip(expected, learner.model.parameters(), strict=True)
        ]
    for slow, wanted in zip(learner.teacher.parameters(), expected, strict=True):
        torch.testing.assert_close(slow.double(), wanted, rtol=1e-5, atol=1e-6)
        assert not slow.requires_grad


def test_the_prototypes_stay_for_the_first_steps(tmp_path: Path) -> None:
    loop = made(tmp_path, "dino", objective=replace(OBJECTIVES["dino"], frozen_prototypes=0.3))
    learner, batches = dino_of(loop), loop.batches(0)
    start = learner.head.prototypes.weight.detach().clone()
    for step in range(4):
        loop.state.progress.step = step
        assert loop.take(next(batches), 0.1) is not None
        assert learner.head.prototypes.weight.equal(start) == (step < 3)


def test_pieces_of_a_batch_give_dino_the_gradient_and_the_centre_of_the_whole(tmp_path: Path) -> None:
    loops = [made(tmp_path / str(size), "dino", execution=Execution(micro_batch=size)) for size in (8, 3)]
    batch = next(loops[0].batches(0))
    taken = [loop.take(batch, 0.0) for loop in loops]
    assert taken[0] is not None
    assert taken[1] is not None
    assert taken[0].loss == pytest.approx(taken[1].loss, rel=1e-5)
    assert taken[0].norm == pytest.approx(taken[1].norm, rel=1e-4)
    torch.testing.assert_close(dino_of(loops[0]).centre, dino_of(loops[1]).centre)


def test_the_teacher_drops_nothing(tmp_path: Path) -> None:
    model = replace(views_config("dino").model, stochastic_depth=0.5, dropout=0.5)
    learner = dino_of(made(tmp_path, "dino", model=model))
    assert learner.training
    assert learner.model.training
    assert not learner.teacher.training
    images = torch.randn(2, 3, 8, 8)
    assert torch.equal(learner.teacher.features(images), learner.teacher.features(images))


def test_the_first_loss_of_moco_is_numpys(tmp_path: Path) -> None:
    loop = made(tmp_path, "moco")
    learner, batch = loop.state.learner, next(loop.batches(0))
    assert isinstance(learner, Moco)
    queries, keys = [], []
    with torch.no_grad():
        for view in batch.views:
            images = (view.float() / 255 - 0.5) / 0.5
            queries.append(learner.predictor(learner.projector(learner.model.features(images))).numpy())
            keys.append(learner.slow_projector(learner.slow_model.features(images)).numpy())
    expected = sum(reference.contrastive_loss(queries[at], keys[1 - at], 0.2) for at in range(2))
    loss, sums = learner(batch)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert 0 <= sums["found"].item() <= 8


def test_a_patch_projection_can_stay_at_its_random_values(tmp_path: Path) -> None:
    optimizer = OptimizerConfig(name="sgd", frozen=("embedding.projection.*",))
    loop = made(tmp_path, "moco", optimizer=optimizer)
    before = weights(loop)
    loop.run()
    after = weights(loop)
    for name in ("learner.model.embedding.projection.weight", "learner.slow_model.embedding.projection.weight"):
        assert torch.allclose(after[name], before[name], atol=1e-7)
    assert not torch.equal(
        after["learner.model.encoder.blocks.0.mlp.out.weight"], before["learner.model.encoder.blocks.0.mlp.out.weight"]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["class-token", "resnet"])
def test_other_models_learn_too(tmp_path: Path, kind: str, model: str) -> None:
    """A class token, whose last block computes one token only, and a ResNet, which has no patches."""
    config, objective = views_config(kind), OBJECTIVES[kind]
    if model == "class-token":
        network = replace(config.model, pool="class-token", class_token=None)
    else:
        network = replace(configure("R50x1", image_size=64, num_classes=0), blocks=(1,), width=32)
        objective = replace(objective, local_size=(32, 32)) if kind == "dino" else objective
    preprocessing = replace(config.preprocessing, image_size=network.image_size)
    config = replace(config, model=network, preprocessing=preprocessing, objective=objective)
    loop = made_loop(views_run(tmp_path, config))
    taken = loop.take(next(loop.batches(0)), 0.01)
    assert taken is not None
    assert taken.good


def test_local_views_have_three_sevenths_of_the_side_in_whole_patches() -> None:
    objective = DinoConfig()
    assert objective.local_side(configure("S/16", image_size=224)) == (96, 96)
    assert objective.local_side(configure("S/4", image_size=32)) == (12, 12)
    assert objective.local_side(configure("S/16", image_size=16)) == (16, 16)
    assert objective.local_side(configure("R50x1", image_size=70)) == (30, 30)
    assert len(objective.views(configure("S/16"))) == 9
    assert objective.flops_factor(configure("S/16")) == pytest.approx(2 + 8 * (96 / 224) ** 2 + 2 / 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prototypes": 1}, "prototypes is 1, but must be at least 2"),
        ({"local_views": -1}, "local_views is -1"),
        ({"momentum": 1.0}, "momentum is 1.0"),
        ({"student_temperature": 0.0}, "student_temperature is 0.0"),
        ({"temperature_warmup": 1.5}, "temperature_warmup is 1.5"),
        ({"local": Augmentation(mixup=0.2)}, "objective.local mixes images"),
    ],
)
def test_dino_refuses_what_cannot_be_learned(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DinoConfig(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden": 0}, "hidden is 0"),
        ({"outputs": 1}, "outputs is 1"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"momentum": -0.5}, "momentum is -0.5"),
        ({"second": Augmentation(cutmix=1.0)}, "objective.second mixes images"),
    ],
)
def test_moco_refuses_what_cannot_be_learned(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MocoConfig(**wrong)


def test_a_model_that_cannot_take_the_local_views_is_refused() -> None:
    objective = OBJECTIVES["dino"]
    model = views_config("dino").model
    with pytest.raises(ConfigError, match="local views of 10x10 are larger than the images of 8x8"):
        views_config("dino", objective=replace(objective, local_size=(10, 10)))
    with pytest.raises(ConfigError, match="patch"):
        views_config("dino", objective=replace(objective, local_size=(5, 5)))
    with pytest.raises(ConfigError, match=r"positions .relative.*other sizes"):
        views_config("dino", model=replace(model, positions="relative"))
    views_config("dino", model=replace(model, positions="relative"), objective=replace(objective, local_views=0))
    views_config("moco", model=replace(model, positions="relative"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_another_image_is_refused_before_the_first_step(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ConfigError, match="`batch` is 1; choose at least 2"):
        views_run(tmp_path, views_config(kind, batch=1)).check()
    views_run(tmp_path, views_config(kind)).check()


def test_moco_refuses_a_batch_in_pieces(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"fewer negatives.*`micro_batch`"):
        views_run(tmp_path, views_config("moco", execution=Execution(micro_batch=4))).check()
    views_run(tmp_path, views_config("dino", execution=Execution(micro_batch=4))).check()


@pytest.mark.parametrize("kind", KINDS)
def test_freezing_and_optimiser_see_what_learns_only(kind: str) -> None:
    learner = views_run(Path(), views_config(kind)).learner(build(views_config(kind).model, seed=0))
    names = {name for name, weight in learner.named_parameters() if weight.requires_grad}
    assert {name.split(".")[0] for name in names} == (
        {"model", "head"} if kind == "dino" else {"model", "projector", "predictor"}
    )


def test_the_head_scores_cosines_with_its_prototypes_and_has_the_gradient_of_prototypes_of_length_1() -> None:
    torch.manual_seed(0)
    head = DinoHead(6, hidden=10, bottleneck=5, prototypes=7).double()
    features = torch.randn(4, 6, dtype=torch.float64)
    answers = head.mlp(features).detach().numpy()
    prototypes = head.prototypes.weight.detach().numpy()
    lengths = np.linalg.norm(answers, axis=1)[:, None] * np.linalg.norm(prototypes, axis=1)
    scores = head(features)
    np.testing.assert_allclose(scores.detach().numpy(), answers @ prototypes.T / lengths, rtol=1e-12)
    weight = torch.randn(4, 7, dtype=torch.float64)
    (scores * weight).sum().backward()
    gradient = head.prototypes.weight.grad
    other = head.prototypes.weight.detach().clone().requires_grad_()
    directions = F.normalize(head.mlp(features).detach(), dim=1)
    (F.linear(directions, F.normalize(other, dim=1)) * weight).sum().backward()
    torch.testing.assert_close(gradient, other.grad, rtol=1e-10, atol=1e-12)
    assert gradient is not None
    assert (gradient * head.prototypes.weight).sum(1).abs().max() < 1e-12  # only directions learn
