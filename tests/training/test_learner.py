"""A learner with parameters, buffers and a teacher of its own trains, resumes to the last bit, and saves its model."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vitrail
from tests.runs.test_conduct import _Heard
from tests.training.following import Distance, Following, FollowingConfig, following_config, following_run, resumed_loop
from tests.training.making import StopAfter, assert_same, made_dataset, made_loop, made_run, weights
from vitrail.base.errors import ConfigError
from vitrail.base.lines import read_rows
from vitrail.checkpoint.files import load
from vitrail.model.build import build
from vitrail.model.contract import Model
from vitrail.runs.conduct import conduct
from vitrail.runs.execution import Execution
from vitrail.training.endings import StoppedError
from vitrail.training.learner import Task
from vitrail.training.loop import Loop
from vitrail.training.optimizers import OptimizerConfig, parameter_groups
from vitrail.training.schedules import Schedule
from vitrail.training.signals import StopSignal

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loop, Path]:
    folder = tmp_path_factory.mktemp("straight")
    loop = made_loop(following_run(folder))
    loop.run()
    return loop, folder


def _learner(loop: Loop) -> Following:
    learner = loop.state.learner
    assert isinstance(learner, Following)
    return learner


def test_it_learns_from_images_without_labels(tmp_path: Path) -> None:
    config = following_config(steps=60, evaluate_every=60, schedule=Schedule(peak=1e-2, warmup_steps=2))
    loop = made_loop(following_run(tmp_path, config))
    loop.run()
    losses = [row["loss"] for row in read_rows(tmp_path / "metrics.jsonl") if "loss" in row]
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert all("length" in row for row in read_rows(tmp_path / "metrics.jsonl") if "loss" in row)


def test_what_it_has_beside_the_model_moves(straight: tuple[Loop, Path]) -> None:
    learner, fresh = _learner(straight[0]), _learner(made_loop(following_run(straight[1] / "fresh")))
    assert int(learner.seen) == 10
    assert learner.centre[0].item() == pytest.approx(0.01 * sum(1 / step for step in range(1, 11)), rel=1e-5)
    for name in ("scale", "projector.weight"):
        assert not torch.equal(learner.get_parameter(name), fresh.get_parameter(name)), name
    assert learner.scale.item() != 1.0


def test_the_teacher_is_the_average_of_the_models_on_the_way(tmp_path: Path) -> None:
    loop = made_loop(following_run(tmp_path))
    learner = _learner(loop)
    expected = [weight.detach().double().clone() for weight in learner.teacher.parameters()]
    for step, batch in zip(range(5), loop.batches(0), strict=False):
        loop.state.progress.step = step
        assert loop.take(batch, 1e-2) is not None
        expected = [
            0.9 * slow + 0.1 * quick.detach().double()
            for slow, quick in zip(expected, learner.model.parameters(), strict=True)
        ]
    for found, wanted in zip(learner.teacher.parameters(), expected, strict=True):
        assert not found.requires_grad
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-6)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_stopped_anywhere_it_ends_with_the_same_bits(
    straight: tuple[Loop, Path], tmp_path_factory: pytest.TempPathFactory, stops: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("stopped")
    for looks in stops:
        try:
            made_loop(following_run(folder), resume=True, stop=StopAfter(looks)).run()
        except StoppedError:
            continue
    loop = resumed_loop(folder)
    loop.run()
    _assert_same_run(loop, folder, straight)


def _assert_same_run(loop: Loop, folder: Path, straight: tuple[Loop, Path]) -> None:
    assert_same(weights(loop), weights(straight[0]))
    assert {"learner.centre", "learner.seen", "learner.scale"} <= weights(loop).keys()
    assert any(name.startswith("learner.teacher.") for name in weights(loop))
    assert loop.state.progress == straight[0].state.progress
    assert read_rows(folder / "metrics.jsonl") == read_rows(straight[1] / "metrics.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", [1, 2])
def test_killed_it_ends_with_the_same_bits(straight: tuple[Loop, Path], tmp_path: Path, checkpoints: int) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    program = [sys.executable, str(ROOT / "tests" / "training" / "following.py"), str(tmp_path)]
    process = subprocess.Popen(program, env=environment)
    while process.poll() is None and len(list((tmp_path / "checkpoints").glob("step-*.safetensors"))) < checkpoints:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    loop = resumed_loop(tmp_path)
    assert loop.state.progress.step >= 2
    loop.run()
    _assert_same_run(loop, tmp_path, straight)


def test_only_the_model_is_saved(tmp_path: Path) -> None:
    run = following_run(tmp_path / "run")
    result = conduct(run, _Heard(), StopSignal())
    model = load(run.folder.model)
    twin = made_loop(following_run(tmp_path / "twin"))
    twin.run()
    assert_same(dict(model.state_dict()), dict(twin.state.learner.model.state_dict()))
    assert model.state_dict().keys() == build(run.config.model).state_dict().keys()
    assert model.info.labels is None
    assert (result.accuracy, result.split) == (None, None)
    assert result.figures.keys() == {"distance_mean", "often_mean"}


class _Hooked(Following):
    """A learner that saves its teacher, leaves the projector alone for three steps, and counts its steps."""

    begun: ClassVar[list[tuple[int, int]]] = []

    @property
    def saved(self) -> Model:
        return self.teacher

    def before_step(self, step: int, steps: int) -> None:
        self.begun.append((step, steps))

    def adjust_gradients(self, step: int, steps: int) -> None:  # noqa: ARG002 - not needed here
        if step < 3:
            self.projector.weight.grad = None


@dataclass(frozen=True, kw_only=True)
class _HookedConfig(FollowingConfig, kind="hooked"):
    def learner(self, model: Model, task: Task) -> Following:
        return _Hooked(model, self, task)

    def check_batch(self, batch: int, *, whole: bool) -> None:
        if batch < 4 or not whole:
            raise ConfigError(f"a batch of {batch} is too small, or in pieces.")


def test_a_learner_prepares_each_step_and_drops_gradients(tmp_path: Path) -> None:
    _Hooked.begun.clear()
    loop = made_loop(following_run(tmp_path, following_config(objective=_HookedConfig())))
    learner, batches = _learner(loop), loop.batches(0)
    start = learner.projector.weight.detach().clone()
    for step in range(4):
        loop.state.progress.step = step
        loop.take(next(batches), 1e-2)
        assert torch.equal(learner.projector.weight, start) == (step < 3)
    assert _Hooked.begun == [(step, 10) for step in range(4)]


def test_a_learner_may_save_its_teacher_which_is_then_what_is_measured(tmp_path: Path) -> None:
    run = following_run(tmp_path / "run", following_config(objective=_HookedConfig()))
    result = conduct(run, _Heard(), StopSignal())
    twin = made_loop(following_run(tmp_path / "twin", following_config(objective=_HookedConfig())))
    twin.run()
    model = load(run.folder.model)
    assert_same(dict(model.state_dict()), dict(_learner(twin).teacher.state_dict()))
    assert result.figures["distance_mean"] == Distance().evaluate(model.eval())


def test_an_objective_may_refuse_a_batch_before_the_run(tmp_path: Path) -> None:
    following_run(tmp_path, following_config(objective=_HookedConfig())).check()
    for changes in ({"batch": 2}, {"execution": Execution(micro_batch=4)}):
        with pytest.raises(ConfigError, match="too small"):
            following_run(tmp_path, following_config(objective=_HookedConfig(), **changes)).check()


def test_the_best_may_be_the_least(tmp_path: Path) -> None:
    config = following_config(patience=100, steps=12)
    run = replace(following_run(tmp_path / "run", config), further=(Distance(every=1),))
    result = conduct(run, _Heard(), StopSignal())
    means = [row["distance_mean"] for row in read_rows(tmp_path / "run" / "metrics.jsonl") if "distance_mean" in row]
    assert (result.weights, result.figures["distance_mean"]) == ("best", min(means))
    assert min(means) < means[-1] or means[-1] == min(means)


def test_what_is_not_the_models_learns_like_its_last_layer() -> None:
    learner = following_run(Path(), following_config()).learner(build(following_config().model, seed=0))
    last = len(learner.model.layers()) - 1
    assert learner.depth_of("scale") == learner.depth_of("projector.weight") == last
    assert learner.depth_of("model.embedding.projection.weight") == 0
    groups = parameter_groups(learner, OptimizerConfig(name="muon", layer_decay=0.5))
    names = {id(parameter): name for name, parameter in learner.named_parameters()}
    factors = {names[id(weight)]: group["rate_factor"] for group in groups for weight in group["params"]}
    assert factors["scale"] == factors["projector.weight"] == 1.0
    assert factors["model.encoder.blocks.0.mlp.out.weight"] == 10 * 0.5**2
    assert not any(name.startswith("teacher.") for name in factors)


def test_freezing_names_parameters_as_the_model_and_the_learner_do(tmp_path: Path) -> None:
    optimizer = OptimizerConfig(frozen=("embedding.*", "projector.bias"))
    loop = made_loop(following_run(tmp_path, following_config(optimizer=optimizer)))
    learner, before = _learner(loop), weights(loop)
    loop.run()
    after = weights(loop)
    frozen = {name for name, weight in learner.named_parameters() if not weight.requires_grad}
    own = {name for name in frozen if not name.startswith("teacher.")}
    assert own == {name for name in frozen if name.startswith("model.embedding.")} | {"projector.bias"}
    assert all(after[f"learner.{name}"].equal(before[f"learner.{name}"]) for name in own)
    run = following_run(tmp_path, following_config(optimizer=OptimizerConfig(frozen=("decoder.*",))))
    with pytest.raises(ConfigError, match=r"no parameter is called 'decoder\.\*'"):
        run.check()


def test_micro_batches_split_both_views(tmp_path: Path) -> None:
    loops = [
        made_loop(following_run(tmp_path / str(size), following_config(execution=Execution(micro_batch=size))))
        for size in (8, 3)
    ]
    batch = next(loops[0].batches(0))
    assert [tuple(view.shape) for view in batch.views] == [(8, 3, 8, 8), (8, 3, 4, 4)]
    taken = [loop.take(batch, 0.0) for loop in loops]
    assert taken[0] is not None
    assert taken[1] is not None
    assert taken[0].loss == pytest.approx(taken[1].loss, rel=1e-5)
    for one, other in zip(loops[0].state.learner.parameters(), loops[1].state.learner.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-6)


def test_a_classifier_refuses_the_images_that_this_learner_takes(tmp_path: Path) -> None:
    from PIL import Image

    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(30):
        picture = made_dataset(30).pictures.read(number)
        Image.fromarray(picture).save(photos / f"{number}.png")
    small = {"steps": 3, "batch": 6, "quiet": True, "model": "Ti/16", "image_size": 32}
    with pytest.raises(vitrail.InputError, match="images without a class"):
        vitrail.train(photos, out=tmp_path / "classifier", **small)
    settings = {"objective.kind": "following", "objective.side": 16, "model.depth": 1}
    run = vitrail.train(photos, out=tmp_path / "run", **small, settings=settings)
    assert (run.result.steps, run.model.config.num_classes, run.accuracy) == (3, 0, None)
    again = vitrail.train(resume=tmp_path / "run", quiet=True)
    assert again.result == run.result
    assert "No label" not in run.report.read_text()


def test_evaluators_of_different_cadence_are_asked_when_it_is_their_turn(straight: tuple[Loop, Path]) -> None:
    rows = read_rows(straight[1] / "metrics.jsonl")
    assert [row["step"] for row in rows if "distance_mean" in row] == [4, 8, 10]
    assert [row["step"] for row in rows if "often_mean" in row] == [3, 6, 9, 10]
    assert straight[0].state.progress.evaluated == {"distance": 10, "often": 10}


class _Interrupted(Distance):
    """An evaluator that is interrupted the first time."""

    times: ClassVar[list[int]] = []

    def evaluate(self, model) -> float:
        self.times.append(1)
        if len(self.times) == 1:
            raise StoppedError("stopped during an evaluation.")
        return super().evaluate(model)


def test_an_evaluator_that_was_interrupted_is_made_up_for_and_the_others_are_not_asked_twice(tmp_path: Path) -> None:
    config = following_config(steps=4)
    first, second = Distance(name="often", every=2), _Interrupted(every=2)
    run = replace(following_run(tmp_path, config), further=(first, second))
    with pytest.raises(StoppedError, match="step 2"):
        made_loop(run).run()
    assert [row["step"] for row in read_rows(tmp_path / "metrics.jsonl") if "often_mean" in row] == [2]
    made_loop(run, resume=True).run()
    rows = read_rows(tmp_path / "metrics.jsonl")
    for name in ("often_mean", "distance_mean"):
        assert [row["step"] for row in rows if name in row] == [2, 4], name


def test_a_classifier_may_have_further_evaluators_and_their_sections(tmp_path: Path) -> None:
    run = replace(made_run(tmp_path / "run"), further=(Distance(every=5),))
    result = conduct(run, _Heard(), StopSignal())
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows if "val_accuracy" in row] == [4, 8, 10]
    assert [row["step"] for row in rows if "distance_mean" in row] == [5, 10]
    assert result.figures.keys() == {"accuracy", "loss", "distance_mean"}
    assert (result.split, result.images) == ("val", 17)
    page = run.folder.report.read_text()
    assert page.index("Most confident mistakes") < page.index("Distance") < page.index("<h2>Data")
    assert f"a mean of {result.figures['distance_mean']:.9f}" in page
