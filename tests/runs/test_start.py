"""A run may begin with the weights of a file: all but the head, with positions for the new size."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import vitrail
from vitrail.base.errors import ConfigError, InputError
from vitrail.model.config import ViTConfig
from vitrail.model.resnet import ResNetConfig
from vitrail.runs.start import Source, open_source, starting_model

CPU = torch.device("cpu")
SETTINGS = {"dim": 16, "depth": 2, "num_heads": 2, "mlp_dim": 32, "patch_size": (4, 4), "image_size": (16, 16)}


def _saved(path: Path, **changes: object) -> tuple[vitrail.ViT, Source]:
    model = vitrail.build(ViTConfig(**SETTINGS | {"num_classes": 5} | changes), seed=1)
    torch.nn.init.normal_(model.head.linear.weight)
    vitrail.save(model, path)
    return model, open_source(str(path))


def test_all_but_the_head_is_the_files(tmp_path: Path) -> None:
    model, source = _saved(tmp_path / "m.safetensors", representation_size=16, dropout=0.1)
    config = source.adapted(num_classes=3, image_size=None)
    assert isinstance(config, ViTConfig)
    assert (config.representation_size, config.dropout, config.num_classes) == (None, 0.0, 3)
    started = starting_model(source.start, config, CPU).state_dict()
    for name, tensor in model.state_dict().items():
        if not name.startswith("head."):
            assert torch.equal(started[name], tensor), name
    assert started["head.linear.weight"].shape == (3, 16)
    assert not started["head.linear.weight"].any()
    assert not started["head.linear.bias"].any()


def test_a_head_that_would_fit_is_zero_all_the_same(tmp_path: Path) -> None:
    _, source = _saved(tmp_path / "m.safetensors")
    started = starting_model(source.start, source.adapted(num_classes=5, image_size=None), CPU)
    assert not started.state_dict()["head.linear.weight"].any()


def test_positions_are_interpolated_for_a_larger_image(tmp_path: Path) -> None:
    model, source = _saved(tmp_path / "m.safetensors")
    config = source.adapted(num_classes=2, image_size=(32, 24))
    started = starting_model(source.start, config, CPU).state_dict()
    (name,) = (name for name in started if "positions" in name)
    old = model.state_dict()[name].reshape(-1, 16)
    grid = old[1:].reshape(1, 4, 4, 16).permute(0, 3, 1, 2)
    grown = F.interpolate(grid, size=(8, 6), mode="bilinear", align_corners=True).permute(0, 2, 3, 1).reshape(-1, 16)
    torch.testing.assert_close(started[name].reshape(-1, 16), torch.cat([old[:1], grown]), atol=1e-5, rtol=0)


def test_what_is_frozen_is_everything_but_the_head(tmp_path: Path) -> None:
    resnet = vitrail.build(ResNetConfig(blocks=(1, 1), width=8, norm_groups=4, num_classes=4), seed=0)
    vitrail.save(resnet, tmp_path / "r.safetensors")
    hybrid = ViTConfig(
        **SETTINGS | {"patch_size": (1, 1)}, backbone=vitrail.BackboneConfig(blocks=(), width=8, norm_groups=4)
    )
    vitrail.save(vitrail.build(hybrid, seed=0), tmp_path / "h.safetensors")
    for file in ("r.safetensors", "h.safetensors"):
        source = open_source(str(tmp_path / file))
        model = starting_model(source.start, source.adapted(num_classes=2, image_size=None), CPU)
        vitrail_freeze(model, source.backbone)
        learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        assert {name.rsplit(".", 2)[-2] for name in learning} == {"linear"}, learning


def vitrail_freeze(model: torch.nn.Module, patterns: tuple[str, ...]) -> None:
    from vitrail.training.optimizers import freeze

    freeze(model, patterns)


def test_a_foreign_file_starts_a_run_too(tmp_path: Path) -> None:
    model, _ = _saved(tmp_path / "m.safetensors")
    vitrail.save(model, tmp_path / "google.npz", to="google")
    source = open_source(str(tmp_path / "google.npz"), num_heads=2)
    started = starting_model(source.start, source.adapted(num_classes=2, image_size=None), CPU).state_dict()
    own = model.state_dict()
    assert all(torch.equal(started[name], own[name]) for name in own if not name.startswith("head."))


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    _, source = _saved(tmp_path / "m.safetensors")
    other = replace(source.start, digest="0" * 64)
    with pytest.raises(InputError, match="has changed since this run was set up"):
        starting_model(other, source.config, CPU)


def test_weights_of_another_kind_of_model_are_refused(tmp_path: Path) -> None:
    _, source = _saved(tmp_path / "m.safetensors")
    with pytest.raises(ConfigError, match=r"a Vision Transformer, but `model.kind` is 'resnet'"):
        starting_model(source.start, ResNetConfig(blocks=(1, 1), width=8, norm_groups=4, num_classes=2), CPU)
