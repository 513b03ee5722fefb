"""Ours -> X -> ours, for every format and every model that it holds."""

import logging

import pytest
import torch

import vitrail
from tests.checkpoint.making import CASES, HELD, OWN, TIMM_BACKBONE, file_for, hybrid, made, same_weights
from tests.tiny import LATER, close, images_for, vit_config
from vitrail import CheckpointError, RotaryConfig


def hints(config, to) -> dict:
    """What an `.npz` does not tell of an image that is not square."""
    return {"image_size": config.image_size} if file_for_suffix(to) == ".npz" else {}


def file_for_suffix(to: str) -> str:
    return ".npz" if to in ("google", "google-linen", "big-vision") else ""


@pytest.mark.parametrize("name", [*HELD, *OWN])
def test_our_own_file_holds_every_model(name, tmp_path) -> None:
    config = OWN[name] if name in OWN else HELD[name][0]
    model = made(config)
    vitrail.save(model, tmp_path / "x.safetensors")
    back = vitrail.load(tmp_path / "x.safetensors")
    assert back.config == config
    same_weights(model, back)
    images = images_for(config)
    close(back(images), model(images), 1e-6)


@pytest.mark.parametrize(("name", "to"), CASES)
def test_a_round_trip_keeps_every_bit(name, to, tmp_path) -> None:
    config = HELD[name][0]
    model = made(config)
    path = file_for(tmp_path, to)
    vitrail.save(model, path, to=to)
    back = vitrail.load(path, **hints(config, to))
    same_weights(model, back)
    ways = {"position_resize"} if to == "huggingface" else set()
    for field in vars(config).keys() - ways:
        assert getattr(back.config, field) == getattr(config, field), field
    images = images_for(config)
    close(back(images), model(images), 1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("to", ["vitrail", "google", "timm", "huggingface"])
def test_other_types_of_numbers_come_back_as_they_were(to, dtype, tmp_path) -> None:
    model = made(vit_config(image_size=(16, 16)), dtype)
    path = file_for(tmp_path, to)
    vitrail.save(model, path, to=to)
    same_weights(model, vitrail.load(path, dtype=dtype))
    loaded = vitrail.load(path)
    wanted = dtype if to == "vitrail" or dtype == torch.float64 else torch.float32
    assert {parameter.dtype for parameter in loaded.parameters()} == {wanted}
    assert vitrail.load(path, dtype=torch.float32)(images_for(model.config)).dtype == torch.float32


def test_big_vision_gets_the_class_entry_folded_and_the_same_outputs(tmp_path, caplog) -> None:
    config = vit_config(image_size=(16, 16))
    model = made(config)
    with caplog.at_level(logging.WARNING):
        vitrail.save(model, tmp_path / "x.npz", to="big-vision")
    assert "class token's position was added to the class token" in caplog.text
    back = vitrail.load(tmp_path / "x.npz")
    images = images_for(config)
    close(back(images), model(images), 1e-6)
    state, folded = model.state_dict(), back.state_dict()
    table = "embedding.positions.table"
    assert torch.equal(folded["embedding.class_token"], state["embedding.class_token"] + state[table][:1])
    assert not folded[table][0].any()
    vitrail.save(back, tmp_path / "y.npz", to="big-vision")
    assert (tmp_path / "y.npz").read_bytes() == (tmp_path / "x.npz").read_bytes()


@pytest.mark.parametrize("kind", ["learned-2d", "sincos-2d"])
@pytest.mark.parametrize("to", ["google", "timm", "huggingface"])
def test_positions_that_others_do_not_know_are_written_as_a_plain_table(kind, to, tmp_path, caplog) -> None:
    config = vit_config(positions=kind, image_size=(16, 16))
    model = made(config)
    path = file_for(tmp_path, to)
    with caplog.at_level(logging.WARNING):
        vitrail.save(model, path, to=to)
    assert f"the {kind} positions were written out as a plain table" in caplog.text
    back = vitrail.load(path)
    assert back.config.positions == "learned-1d"
    images = images_for(config)
    close(back(images), model(images), 1e-6)


CANNOT = [
    (vit_config(positions="relative"), ("google", "big-vision", "timm", "huggingface", "torchvision"), "relative"),
    (vit_config(position_placement="every-layer"), ("google", "big-vision", "timm", "huggingface"), "every-layer"),
    (vit_config(representation_size=5), ("timm", "huggingface"), "representation layer"),
    (vit_config(pool="mean"), ("torchvision",), "mean pooling"),
    (vit_config(pool="mean", class_token=True), ("huggingface",), "a class token that is not pooled"),
    (vit_config(pool="attention"), ("google", "huggingface", "torchvision"), "attention pooling"),
    (vit_config(layer_scale=0.1), ("google", "big-vision", "huggingface", "torchvision"), "layer_scale"),
    (vit_config(registers=2), ("google", "big-vision", "huggingface", "torchvision"), "register tokens"),
    (vit_config(mlp="swiglu"), ("google", "big-vision", "huggingface", "torchvision"), "a gate"),
    (vit_config(norm_embedded=True), ("google", "huggingface", "torchvision"), "LayerNorm before the encoder"),
    (vit_config(rotary=RotaryConfig()), ("google", "timm", "huggingface", "torchvision"), "rotary positions"),
    (vit_config(**LATER["distilled"]), ("google", "big-vision", "torchvision"), "a distillation token"),
    (vit_config(pool="class-and-mean"), ("google", "timm", "torchvision"), "class-and-mean pooling"),
    (vit_config(projection_size=8), ("google", "huggingface", "torchvision"), "a projection"),
    (vit_config(pool="mean", norm_pooled=True), ("google", "big-vision"), "LayerNorm after the mean"),
    (vit_config(pool="mean", class_token=True), ("google", "big-vision"), "class token that is not pooled"),
    (vit_config(), ("torchvision",), "not square"),
    (vit_config(num_classes=0), ("torchvision",), "without a last layer"),
    (vit_config(positions="none"), ("big-vision", "huggingface", "torchvision"), "none positions"),
    (hybrid(), ("big-vision", "huggingface", "torchvision"), "convolutional backbone"),
    (HELD["resnet"][0], ("google-linen", "big-vision", "huggingface", "torchvision"), "a ResNet"),
]


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize(
    ("config", "to", "reason"), [(config, to, reason) for config, formats, reason in CANNOT for to in formats]
)
def test_what_a_format_cannot_hold_is_refused_by_name(config, to, reason, lossy, tmp_path) -> None:
    path = file_for(tmp_path, to)
    with pytest.raises(CheckpointError, match="nothing is dropped silently") as error:
        vitrail.save(made(config), path, to=to, lossy=lossy)
    assert reason in str(error.value)
    assert not path.exists()


NUMERICS = [
    (vit_config(gelu="erf"), "google", "gelu='erf': Google's release computes with 'tanh'"),
    (vit_config(norm_eps=1e-12), "google", "norm_eps=1e-12"),
    (vit_config(image_size=(16, 16)), "torchvision", "gelu='tanh': torchvision computes with 'erf'"),
    (hybrid(), "timm", "backbone.standardisation='std-plus-eps'"),
    (hybrid(**TIMM_BACKBONE), "google", "backbone.norm_eps=1e-05"),
    (HELD["resnet"][0], "timm", "standardisation_eps=1e-10"),
]


@pytest.mark.parametrize(("config", "to", "reason"), NUMERICS)
def test_other_numerics_are_refused_unless_they_may_be_lost(config, to, reason, tmp_path) -> None:
    model, path = made(config), file_for(tmp_path, to)
    with pytest.raises(CheckpointError, match="with `lossy`") as error:
        vitrail.save(model, path, to=to)
    assert reason in str(error.value)
    assert not path.exists()
    vitrail.save(model, path, to=to, lossy=True)
    back = vitrail.load(path, image_size=config.image_size)
    same_weights(model, back)
    if to == "torchvision":  # a file for it is about what it computes
        assert back.config.gelu == "erf"


def test_labels_and_preprocessing_travel_with_formats_that_hold_them(tmp_path) -> None:
    model = made(vit_config(image_size=(16, 16), gelu="erf"))
    pixels = vitrail.Preprocessing(image_size=(16, 16), interpolation="bicubic", antialias=True, mean=(0.1, 0.2, 0.3))
    labels = [f"class {letter}" for letter in "abcdefg"]
    for to in ("timm", "huggingface", "torchvision"):
        path = file_for(tmp_path / to, to)
        path.parent.mkdir()
        vitrail.save(model, path, to=to, labels=labels, preprocessing=pixels)
        back = vitrail.load(path)
        assert back.info.labels == tuple(labels)
        assert back.info.preprocessing == pixels


def test_an_npz_says_what_it_leaves_behind(tmp_path, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        vitrail.save(made(vit_config()), tmp_path / "x.npz", to="google", labels=list("abcdefg"))
    assert "an .npz has no place for labels" in caplog.text


@pytest.mark.parametrize(
    ("to", "name"), [("google", "x.safetensors"), ("torchvision", "x.pth"), ("huggingface", "x.bin")]
)
def test_a_name_that_would_mislead_is_refused(to, name, tmp_path) -> None:
    with pytest.raises(CheckpointError, match=r"suffix|ends in"):
        vitrail.save(made(vit_config(image_size=(16, 16), gelu="erf")), tmp_path / name, to=to, lossy=True)


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_format_is_refused(tmp_path) -> None:
    with pytest.raises(CheckpointError, match=r"no format 'tim'.* Did you mean timm"):
        vitrail.save(made(vit_config()), tmp_path / "x", to="tim")
