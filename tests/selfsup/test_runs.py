"""Runs without labels: they resume to the last bit, are measured and shown, and save a model without a head."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.runs.test_conduct import _Heard
from tests.selfsup.making import unlabelled_config, unlabelled_run
from tests.training.making import StopAfter, assert_same, made_loop, weights
from tests.training.test_ranks import _assert_close
from vitrail.base.errors import InputError
from vitrail.base.lines import read_rows
from vitrail.checkpoint.files import load
from vitrail.runs.conduct import conduct
from vitrail.runs.data import RunData
from vitrail.runs.probe import changed_copies, probe_data
from vitrail.selfsup.mae import DecoderConfig, MAEConfig
from vitrail.selfsup.masked_patch import MaskedPatchConfig
from vitrail.training.endings import StoppedError
from vitrail.training.signals import StopSignal

MAE = MAEConfig(decoder=DecoderConfig(dim=8, depth=1, num_heads=2, mlp_dim=16))
OBJECTIVES = {"masked-patch": MaskedPatchConfig(), "mae": MAE}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_stopped_run_ends_with_the_same_bits(name: str, tmp_path: Path) -> None:
    config = unlabelled_config(OBJECTIVES[name])
    straight = made_loop(unlabelled_run(tmp_path / "straight", config))
    straight.run()
    with pytest.raises(StoppedError):
        made_loop(unlabelled_run(tmp_path / "stopped", config), stop=StopAfter(5)).run()
    resumed = made_loop(unlabelled_run(tmp_path / "stopped", config), resume=True)
    assert 0 < resumed.state.progress.step < 10
    resumed.run()
    assert_same(weights(straight), weights(resumed))
    one, other = (read_rows(tmp_path / folder / "metrics.jsonl") for folder in ("straight", "stopped"))
    assert one == other


@pytest.mark.parametrize("name", OBJECTIVES)
def test_micro_batches_change_nothing_but_rounding(name: str, tmp_path: Path) -> None:
    config = unlabelled_config(OBJECTIVES[name])
    whole = made_loop(unlabelled_run(tmp_path / "whole", config))
    parts = made_loop(
        unlabelled_run(tmp_path / "parts", replace(config, execution=replace(config.execution, micro_batch=2)))
    )
    for loop in (whole, parts):
        loop.run()
    _assert_close(weights(whole), weights(parts))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_run_is_measured_and_shown_and_saves_a_model_without_a_head(name: str, tmp_path: Path) -> None:
    run = unlabelled_run(tmp_path, unlabelled_config(OBJECTIVES[name]))
    result = conduct(run, _Heard(), StopSignal())
    rows = read_rows(tmp_path / "metrics.jsonl")
    measured = [row for row in rows if "probe_accuracy" in row]
    assert [row["step"] for row in measured] == [4, 8, 10]
    assert all(0 <= row["probe_accuracy"] <= 1 and row["probe_spread"] > 0 for row in measured)
    assert all(np.isfinite(row["val_loss"]) for row in rows if "val_loss" in row)
    assert result.figures["probe_accuracy"] == measured[-1]["probe_accuracy"]
    model = load(run.folder.model)
    assert model.config.num_classes == 0
    assert model.info.labels is None
    assert model.info.provenance["config"]["objective"]["kind"] == name
    assert not [part for part in model.state_dict() if "decoder" in part or "mask" in part]
    page = run.folder.report.read_text()
    for words in ("Neighbours", "Completed images", "few-shot accuracy", "step 10"):
        assert words in page


def test_a_class_token_shows_its_heads(tmp_path: Path) -> None:
    config = unlabelled_config(MaskedPatchConfig())
    config = replace(config, model=replace(config.model, pool="class-token", class_token=True))
    run = unlabelled_run(tmp_path, config)
    probe = next(each for each in run.evaluators() if each.name == "probe")
    model = run.loop(watch=_Heard(), stop=StopSignal()).state.learner.model.eval()
    outcome = probe.evaluate(model)
    assert outcome.attention.shape == (4, 2, 4, 4)
    assert (outcome.attention >= 0).all()
    assert (outcome.attention.sum((2, 3)) < 1).all()  # the rest is what the class token reads of itself
    assert "head 1" in "".join(section.html for section in probe.sections(outcome))


def test_without_labels_a_changed_copy_is_looked_for(tmp_path: Path) -> None:
    run = unlabelled_run(tmp_path, unlabelled_config(MaskedPatchConfig()))
    bare = {
        name: replace(split, targets=np.full(len(split), -1), labels=())
        for name, split in (("train", run.data.train), ("evaluation", run.data.evaluation))
    }
    probe = next(each for each in replace(run, data=RunData(**bare)).evaluators() if each.name == "probe")
    model = run.loop(watch=_Heard(), stop=StopSignal()).state.learner.model.eval()
    figures = probe.figures(probe.evaluate(model))
    assert figures.keys() == {"spread", "found"}
    assert 0 <= figures["found"] <= 1
    with pytest.raises(InputError, match="probe is 'fewshot', but made has no labels to measure with"):
        probe_data("fewshot", RunData(**bare), "made")


def test_labels_that_are_asked_for_and_absent_are_refused_before_the_first_step(tmp_path: Path) -> None:
    run = unlabelled_run(tmp_path, unlabelled_config(MaskedPatchConfig(probe="fewshot")))
    run.check()
    unsorted = replace(run.data.train, targets=np.full(42, -1), labels=())
    with pytest.raises(InputError, match="leave `probe` out, or choose neighbours"):
        replace(run, data=RunData(train=unsorted, evaluation=None)).check()


def test_a_copy_is_mirrored_and_keeps_its_size() -> None:
    image = torch.zeros(1, 1, 32, 32, dtype=torch.uint8)
    image[:, :, :, 24:] = 200
    copy = changed_copies(image)
    assert copy.shape == image.shape
    assert copy[0, 0, 16, 2] == 200
    assert copy[0, 0, 16, 30] == 0
