import logging

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

import vitrail
from tests.checkpoint.making import hybrid, made, resnet, same_weights
from tests.tiny import close, images_for, vit_config
from vitrail import CheckpointError, ConfigError, VitrailError
from vitrail.checkpoint.files import describe_model
from vitrail.checkpoint.formats.timm_layout import Dialect, layout
from vitrail.checkpoint.layout import write_layout
from vitrail.model.patches import resize_patch_kernel
from vitrail.model.positions import resize_positions, resize_relative


@pytest.fixture
def stored(tmp_path):
    """Save a model of some config and return its path and itself."""

    def make(config, **extras):
        model = made(config)
        return vitrail.save(model, tmp_path / "x.safetensors", **extras), model

    return make


def test_a_new_number_of_classes_starts_the_head_at_zero_and_says_so(stored, caplog) -> None:
    path, model = stored(vit_config(), labels=list("abcdefg"))
    with caplog.at_level(logging.WARNING):
        new = vitrail.load(path, num_classes=3)
    assert new.config.num_classes == 3
    assert not new.head.linear.weight.any()
    assert not new.head.linear.bias.any()
    assert new.head.linear.weight.shape == (3, 32)
    assert new.info.labels is None
    assert "the head was reset to zero for 3 classes; the file has 7" in caplog.text
    same_weights(new.encoder, model.encoder)
    assert new.head.linear.weight.requires_grad


def test_the_same_number_of_classes_keeps_the_head(stored) -> None:
    path, model = stored(vit_config(), labels=list("abcdefg"))
    same = vitrail.load(path, num_classes=7)
    same_weights(same, model)
    assert same.info.labels == tuple("abcdefg")
    assert same.info.notes == ()


def test_no_classes_take_the_head_away(stored) -> None:
    path, model = stored(vit_config())
    new = vitrail.load(path, num_classes=0)
    images = images_for(model.config)
    close(new(images), model.features(images), 1e-6)


def test_a_representation_layer_can_be_left_behind(stored) -> None:
    path, _ = stored(vit_config(representation_size=12))
    new = vitrail.load(path, representation_size=None, num_classes=3)
    assert new.head.representation is None
    assert new.head.linear.weight.shape == (3, 32)
    assert "the representation layer of 12 units" in new.info.notes[0]


def test_the_projection_of_clip_can_be_left_behind(stored) -> None:
    path, model = stored(vit_config(norm_embedded=True, projection_size=12, num_classes=0))
    new = vitrail.load(path, projection_size=None, num_classes=3)
    assert new.head.projection is None
    assert new.head.linear.weight.shape == (3, 32)
    assert "the projection layer of 12 units was removed." in new.info.notes
    images = images_for(model.config)
    close(new.features(images) @ model.head.projection.weight.T, model(images), 1e-5)


def test_a_resnet_gets_a_new_head_too(stored) -> None:
    path, _ = stored(resnet())
    new = vitrail.load(path, num_classes=3, image_size=64)
    assert not new.linear.weight.any()
    assert new.config.image_size == (64, 64)


@pytest.mark.parametrize("way", ["google", "timm", "huggingface", "torchvision"])
def test_a_new_image_size_resizes_positions_the_way_of_the_source(way, stored, caplog) -> None:
    path, model = stored(vit_config(position_resize=way), preprocessing=vitrail.Preprocessing(image_size=(12, 16)))
    with caplog.at_level(logging.WARNING):
        new = vitrail.load(path, image_size=(20, 24))
    wanted = resize_positions(model.embedding.positions.table, (3, 4), (5, 6), way=way)
    close(new.embedding.positions.table, wanted, 0)
    assert new.info.preprocessing.image_size == (20, 24)
    assert "positions were resized from a grid of 3x4 to 5x6" in caplog.text
    assert new(images_for(new.config)).shape == (2, 7)
    same_weights(new.encoder, model.encoder)


@pytest.mark.parametrize("kind", ["none", "learned-1d", "learned-2d", "sincos-2d", "relative"])
@pytest.mark.parametrize("placement", ["input", "every-layer", "every-layer-shared"])
def test_every_kind_of_positions_is_resized(kind, placement, stored) -> None:
    if placement != "input" and kind in ("none", "relative"):
        with pytest.raises(ConfigError):
            vit_config(positions=kind, position_placement=placement)
        return
    config = vit_config(positions=kind, position_placement=placement)
    path, model = stored(config)
    new = vitrail.load(path, image_size=(16, 16))
    assert new(images_for(new.config)).shape == (2, 7)
    back = vitrail.load(path, image_size=config.image_size)
    same_weights(back, model)
    fresh = vitrail.build(new.config)
    assert {name: value.shape for name, value in fresh.state_dict().items()} == {
        name: value.shape for name, value in new.state_dict().items()
    }
    if kind == "sincos-2d":
        for ours, wanted in zip(new.buffers(), fresh.buffers(), strict=True):
            assert torch.equal(ours, wanted)
    if kind == "relative":
        old = model.encoder.blocks[1].attention.offsets
        close(new.encoder.blocks[1].attention.offsets, resize_relative(old, (3, 4), (4, 4)), 0)


def test_a_new_patch_size_resizes_kernel_and_positions(stored) -> None:
    path, _ = stored(vit_config())
    new = vitrail.load(path, patch_size=2)
    assert new.config.grid == (6, 8)
    assert new.info.notes == (
        "the patch kernel was resized from 4x4 to 2x2.",
        "positions were resized from a grid of 3x4 to 6x8.",
    )
    assert new(images_for(new.config)).shape == (2, 7)


def test_a_hybrid_can_take_other_images(stored) -> None:
    path, _ = stored(hybrid())
    new = vitrail.load(path, image_size=64)
    assert new.config.grid == (8, 8)
    assert new(images_for(new.config)).shape == (2, 7)


@given(st.integers(2, 6), st.integers(0, 6), st.integers(0, 6))
def test_a_grown_kernel_answers_a_resized_patch_exactly_as_before(old, taller, wider) -> None:
    generator = torch.Generator().manual_seed(old)
    kernel = torch.randn(5, 3 * old * old, generator=generator, dtype=torch.float64)
    patch = torch.randn(1, 3, old, old, generator=generator, dtype=torch.float64)
    new = (old + taller, old + wider)
    grown = F.interpolate(patch, size=new, mode="bilinear", align_corners=False, antialias=True)
    answers = resize_patch_kernel(kernel, (old, old), new) @ grown.flatten()
    np.testing.assert_allclose(answers, kernel @ patch.flatten(), atol=1e-8)


def test_a_shrunk_kernel_is_the_best_in_the_least_squares_sense() -> None:
    generator = torch.Generator().manual_seed(0)
    kernel = torch.randn(1, 64, generator=generator, dtype=torch.float64)
    patches = torch.randn(20_000, 1, 8, 8, generator=generator, dtype=torch.float64)
    small = F.interpolate(patches, size=(4, 4), mode="bilinear", align_corners=False, antialias=True).flatten(1)
    wanted = patches.flatten(1) @ kernel.T
    ours = (small @ resize_patch_kernel(kernel, (8, 8), (4, 4)).T - wanted).square().mean()
    best = (small @ torch.linalg.lstsq(small, wanted).solution - wanted).square().mean()
    naive = F.interpolate(kernel.reshape(1, 1, 8, 8), size=(4, 4), mode="bilinear", antialias=True).reshape(1, 16)
    assert ours < 1.01 * best
    assert ours < (small @ naive.T - wanted).square().mean()


def test_settings_without_weights_just_change(stored) -> None:
    path, model = stored(vit_config())
    new = vitrail.load(path, dropout=0.1, gelu="erf", norm_eps=1e-3)
    assert (new.config.dropout, new.config.gelu, new.config.norm_eps) == (0.1, "erf", 1e-3)
    assert new.encoder.blocks[0].norm1.eps == 1e-3
    same_weights(new, model)


@pytest.mark.parametrize(("name", "value"), [("num_heads", 8), ("dim", 64), ("depth", 3), ("positions", "none")])
def test_another_model_is_refused(name, value, stored) -> None:
    path, _ = stored(vit_config())
    with pytest.raises(CheckpointError, match=f"{name}={value!r} .* has {name}="):
        vitrail.load(path, **{name: value})


def test_a_pool_that_needs_other_weights_is_refused_with_their_names(stored) -> None:
    path, _ = stored(vit_config())
    with pytest.raises(CheckpointError, match="does not fit the requested model") as error:
        vitrail.load(path, pool="attention")
    assert "head.pool.probe 1x32" in str(error.value)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "settings",
    [
        {"image_size": ("a", "b")},
        {"image_size": (-16, -24)},
        {"image_size": "224"},
        {"num_heads": "x"},
        {"pool": "max"},
    ],
)
def test_settings_that_make_no_sense_are_refused_for_foreign_files_too(settings, tmp_path) -> None:
    model = made(vit_config(dim=24, num_heads=3, image_size=(8, 12)))
    save_file({name: tensor.clone() for name, tensor in timm_state(model).items()}, tmp_path / "x.safetensors")
    with pytest.raises(VitrailError):
        vitrail.load(tmp_path / "x.safetensors", **{"num_heads": 3, "image_size": (8, 12)} | settings)
    vitrail.load(tmp_path / "x.safetensors", num_heads=3, image_size=(8, 12))


def timm_state(model) -> dict[str, torch.Tensor]:
    source = write_layout(layout(model.config, Dialect(entries=1)), describe_model(model).tensors)
    return {name: source[name] for name in source}


def test_an_unknown_setting_is_refused(stored) -> None:
    path, _ = stored(vit_config())
    with pytest.raises(ConfigError, match=r"no setting 'num_clases'.*Did you mean num_classes"):
        vitrail.load(path, num_clases=3)


def test_an_image_size_that_patches_do_not_divide_is_refused(stored) -> None:
    path, _ = stored(vit_config())
    with pytest.raises(ConfigError, match="does not divide the image size 13x13"):
        vitrail.load(path, image_size=13)
