"""Verbs take every mixer."""

import json
from pathlib import Path

import pytest

import vitrail
from tests.verbs.making import data_file
from vitrail.cli.main import main
from vitrail.model.mixer_settings import MixerConfig


@pytest.mark.parametrize("kind", sorted(MixerConfig.members))
def test_a_model_with_it_is_trained_and_evaluated(kind: str, tmp_path: Path) -> None:
    data = data_file(tmp_path)
    small = {"steps": 2, "batch": 8, "settings": {"model.depth": 2}}
    run = vitrail.train(data, mixer=kind, out=tmp_path / "run", quiet=True, **small)
    assert run.model.config.mixer.kind == kind
    assert 0 <= vitrail.evaluate(run.model_file, data, resamples=100).accuracy <= 1


def test_flags_and_paths_set_a_mixer(tmp_path: Path, capsys) -> None:
    common = ["train", str(data_file(tmp_path)), "--steps", "2", "--batch", "8", "--json", "--set", "model.depth=1"]
    flags = [*common, "--mixer", "window", "--set", "model.mixer.size=2", "--out", str(tmp_path / "one")]
    assert main(flags) == 0
    assert main([*common, "--set", "model.mixer=window", "--out", str(tmp_path / "two")]) == 0
    configs = [json.loads((tmp_path / name / "config.json").read_text()) for name in ("one", "two")]
    assert [config["model"]["mixer"] for config in configs] == [
        {"kind": "window", "size": 2},
        {"kind": "window", "size": 7},
    ]
    assert capsys.readouterr().err.count("Traceback") == 0


def test_a_mixer_that_a_model_cannot_have_is_one_sentence(tmp_path: Path, capsys) -> None:
    data, out = str(data_file(tmp_path)), str(tmp_path / "run")
    assert main(["train", data, "--model", "Ti/8", "--mixer", "pooling", "--steps", "2", "--out", out]) == 2
    assert "shows the patches to no class token" in capsys.readouterr().err
    assert main(["train", data, "--model", "R50x1", "--mixer", "pooling", "--steps", "2", "--out", out]) == 2
    assert "mixer is not a setting" in capsys.readouterr().err
    assert not Path(out).exists()
