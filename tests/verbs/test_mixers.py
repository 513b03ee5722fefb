"""Verbs take every mixer."""

import json
from pathlib import Path

import pytest

import vitrail
from vitrail.cli.main import main
from vitrail.model.mixer_settings import MixerConfig


@pytest.mark.parametrize("kind", sorted(MixerConfig.members))
def test_a_model_with_it_is_trained_and_evaluated(kind: str, tmp_path: Path) -> None:
    run = vitrail.train("sample", steps=2, batch=8, fraction=0.02, mixer=kind, out=tmp_path / "run", quiet=True)
    assert run.model.config.mixer.kind == kind
    assert vitrail.evaluate(run.model_file, "sample", limit=20).images == 20


def test_flags_and_paths_set_a_mixer(tmp_path: Path, capsys) -> None:
    common = ["train", "sample", "--steps", "2", "--batch", "8", "--fraction", "0.02", "--json"]
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
    out = str(tmp_path / "run")
    assert main(["train", "sample", "--model", "Ti/14", "--mixer", "pooling", "--steps", "2", "--out", out]) == 2
    assert "shows the patches to no class token" in capsys.readouterr().err
    assert main(["train", "sample", "--model", "R50x1", "--mixer", "pooling", "--steps", "2", "--out", out]) == 2
    assert "mixer is not a setting" in capsys.readouterr().err
    assert not Path(out).exists()
