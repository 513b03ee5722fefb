"""A model that has collapsed is noticed: by the probe, by DINO's teacher, on stderr and in the report."""

from pathlib import Path

import pytest
import torch

from tests.selfsup.making import unlabelled_config, unlabelled_run
from tests.selfsup.views import views_config, views_run
from tests.training.making import made_loop
from vitrail.model.build import build
from vitrail.selfsup.dino import Dino
from vitrail.selfsup.masked_patch import MaskedPatchConfig
from vitrail.verbs.collapse import COLLAPSES, collapse_notes
from vitrail.verbs.watch import Watcher


def test_features_of_one_direction_are_reported_once_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unlabelled_run(tmp_path, unlabelled_config(MaskedPatchConfig()))
    probe = next(each for each in run.evaluators() if each.name == "probe")
    model = build(run.config.model, seed=0).eval()
    alive = probe.evaluate(model)
    with torch.no_grad():
        model.encoder.norm.weight.zero_()
        model.encoder.norm.bias.fill_(0.5)  # every image has the features (0.5, ..., 0.5)
    dead = probe.evaluate(model)
    assert probe.figures(dead)["spread"] < 1e-6 < 0.02 < probe.figures(alive)["spread"]
    assert "the model has collapsed" in "".join(section.html for section in probe.sections(dead))
    assert "the model has collapsed" not in "".join(section.html for section in probe.sections(alive))
    watcher = Watcher(run.config, quiet=False)
    watcher(1, {"probe_spread": probe.figures(alive)["spread"]})
    assert "collapsed" not in capsys.readouterr().err
    for step in (2, 3):
        watcher(step, {"probe_spread": probe.figures(dead)["spread"]})
    said = capsys.readouterr().err
    assert said.count("the model has collapsed") == 1
    assert "all images point in nearly one direction: the model has collapsed (probe_spread is 0.000 at step 2)" in said


@pytest.mark.parametrize(("weights", "name"), [("one", "mean_entropy"), ("alike", "teacher_entropy")])
def test_a_teacher_with_one_answer_or_none_is_noticed(weights: str, name: str, tmp_path: Path) -> None:
    loop = made_loop(views_run(tmp_path, views_config("dino")))
    learner, batch = loop.state.learner, next(loop.batches(0))
    assert isinstance(learner, Dino)
    before = _figures(learner, batch)
    assert collapse_notes(before, 10, 10) == {}
    with torch.no_grad():
        if weights == "one":  # the centre favours the first prototype by far
            learner.centre[0] = -100
        else:  # one direction for all prototypes: every score is the same
            learner.teacher_head.prototypes.weight.copy_(learner.teacher_head.prototypes.weight[:1].expand(24, -1))
    notes = collapse_notes(_figures(learner, batch), 10, 10)
    assert list(notes) == [name]
    assert "the teacher" in notes[name]
    assert "the model has collapsed" in notes[name]


def _figures(learner: Dino, batch) -> dict[str, float]:
    with torch.no_grad():
        _, sums = learner(batch)
    return {name: float(value) / len(batch) for name, value in sums.items()}


def test_what_random_weights_show_counts_from_the_second_half_on() -> None:
    values = {"feature_spread": 0.01, "teacher_entropy": 0.999}
    assert collapse_notes(values, 49, 100) == {}
    assert list(collapse_notes(values, 50, 100)) == ["feature_spread", "teacher_entropy"]
    assert set(COLLAPSES) == {"probe_spread", "feature_spread", "mean_entropy", "teacher_entropy"}
