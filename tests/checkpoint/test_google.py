"""Against the authors' JAX code: recorded weights, images and logits, in every dialect."""

import logging

import numpy as np
import pytest
import torch

import vitrail
from tests.checkpoint.making import JAX, made, same_weights
from tests.tiny import close, images_for, vit_config
from vitrail import CheckpointError

NAMES = ["vit_token", "vit_gap", "vit_prelogits", "hybrid_stem", "hybrid_r50like"]
G1 = {
    "MultiHeadDotProductAttention_0": "MultiHeadDotProductAttention_1",
    "LayerNorm_1": "LayerNorm_2",
    "MlpBlock_0": "MlpBlock_3",
}


def arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(JAX / f"{name}.params.npz") as stored:
        return dict(stored)


def images_and_logits(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    with np.load(JAX / f"{name}.io.npz") as stored:
        return torch.tensor(stored["images"].transpose(0, 3, 1, 2)), torch.tensor(stored["logits"])


def renamed(name: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        name = name.replace(old, new)
    return name


def scanned(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Stack the blocks of a file along a new first axis."""
    kept = {name: value for name, value in values.items() if "encoderblock_" not in name}
    for name in values:
        if "encoderblock_0/" in name:
            stack = [values[name.replace("encoderblock_0/", f"encoderblock_{layer}/")] for layer in range(2)]
            kept[name.replace("encoderblock_0/", "encoderblock/")] = np.stack(stack)
    return kept


def big_vision(values: dict[str, np.ndarray], position_name: str = "pos_embedding") -> dict[str, np.ndarray]:
    """Move the class token's position into the class token, as the authors' later code has it."""
    values = dict(values)
    table = values.pop("Transformer/posembed_input/pos_embedding")
    if "cls" in values:
        values["cls"] = values["cls"] + table[:, :1]
        table = table[:, 1:]
    return values | {position_name: table}


def prefixed(values: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {f"{prefix}{name}": value for name, value in values.items()}


DIALECTS = {
    "G1": lambda values: {renamed(name, G1): value for name, value in values.items()},
    "G2": dict,
    "G3": lambda values: prefixed(big_vision(values), "params/"),
    "G3, older": lambda values: prefixed(big_vision(values, "Transformer/pos_embedding"), "params/"),
    "G3, two towers": lambda values: (
        prefixed(big_vision(values), "params/img/") | {"params/txt/head/bias": np.zeros(3), "params/t": np.zeros(1)}
    ),
    "G4": lambda values: prefixed(scanned(big_vision(values)), "params/"),
    "G5": lambda values: (
        prefixed({renamed(name, G1): value for name, value in values.items()}, "opt/target/")
        | {"opt/state/step": np.array(7)}
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["vit_token", "vit_gap", "vit_prelogits"])
def test_every_dialect_gives_the_logits_of_the_jax_code(name, dialect, tmp_path) -> None:
    np.savez(tmp_path / "x.npz", **DIALECTS[dialect](arrays(name)))
    images, logits = images_and_logits(name)
    close(vitrail.load(tmp_path / "x.npz")(images), logits, 1e-5)


@pytest.mark.parametrize("name", ["hybrid_stem", "hybrid_r50like"])
@pytest.mark.parametrize("dialect", ["G1", "G2", "G5"])
def test_hybrids_give_the_logits_of_the_jax_code(name, dialect, tmp_path) -> None:
    values = DIALECTS[dialect](arrays(name))
    if dialect == "G1":  # as the first files have them
        values = {
            key: value[None, None, None] if "/gn" in key or "gn_root" in key else value for key, value in values.items()
        }
    np.savez(tmp_path / "x.npz", **values)
    images, logits = images_and_logits(name)
    close(vitrail.load(tmp_path / "x.npz")(images), logits, 1e-5)


def test_the_numerics_and_pixels_are_the_releases() -> None:
    model = vitrail.load(JAX / "hybrid_stem.params.npz")
    config = model.config
    assert (config.gelu, config.norm_eps, config.position_resize) == ("tanh", 1e-6, "google")
    assert (config.backbone.norm_eps, config.backbone.standardisation) == (1e-6, "std-plus-eps")
    assert (model.info.preprocessing.geometry, model.info.preprocessing.antialias) == ("square", False)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("to", ["google", "google-linen"])
def test_their_file_comes_back_to_the_last_bit(name, to, tmp_path) -> None:
    vitrail.save(vitrail.load(JAX / f"{name}.params.npz"), tmp_path / "x.npz", to=to)
    given = DIALECTS["G1" if to == "google" else "G2"](arrays(name))
    with np.load(tmp_path / "x.npz") as written:
        assert set(written) == set(given)
        for key, value in given.items():
            assert written[key].dtype == value.dtype
            assert np.array_equal(written[key], value), key


def test_what_lies_beside_the_model_is_named(tmp_path) -> None:
    np.savez(tmp_path / "x.npz", **DIALECTS["G5"](arrays("vit_token")))
    assert vitrail.load(tmp_path / "x.npz").info.notes == ("only opt/target/ was read; the file also holds opt/state.",)


def test_a_head_of_zeros_is_said_and_does_not_fail(tmp_path, caplog) -> None:
    values = arrays("vit_token")
    np.savez(tmp_path / "x.npz", **values | {"head/kernel": np.zeros_like(values["head/kernel"])})
    with caplog.at_level(logging.WARNING):
        model = vitrail.load(tmp_path / "x.npz")
    assert "the head is all zeros" in caplog.text
    assert "the head is all zeros" in model.info.notes[0]
    assert vitrail.load(tmp_path / "x.npz", num_classes=3).info.notes == (
        "the head was reset to zero for 3 classes; the file has 10.",
    )


def test_bfloat16_is_read_where_numpy_sees_two_bytes_of_no_type(tmp_path) -> None:
    values = arrays("vit_token")
    rounded = {name: torch.tensor(value).bfloat16() for name, value in values.items()}
    np.savez(
        tmp_path / "x.npz", **{name: value.view(torch.int16).numpy().view("V2") for name, value in rounded.items()}
    )
    model = vitrail.load(tmp_path / "x.npz", dtype=torch.bfloat16)
    assert torch.equal(model.head.linear.bias, rounded["head/bias"])
    model = vitrail.load(tmp_path / "x.npz")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert torch.equal(model.head.linear.bias, rounded["head/bias"].float())


def test_a_file_of_several_types_becomes_the_widest(tmp_path) -> None:
    values = arrays("vit_token")
    values["head/bias"] = values["head/bias"].astype(np.float16)
    np.savez(tmp_path / "x.npz", **values)
    assert {parameter.dtype for parameter in vitrail.load(tmp_path / "x.npz").parameters()} == {torch.float32}


def test_arrays_in_fortran_order_and_big_endian_are_read(tmp_path) -> None:
    values = {name: np.asfortranarray(value.astype(">f4")) for name, value in arrays("vit_token").items()}
    np.savez_compressed(tmp_path / "x.npz", **values)
    same_weights(vitrail.load(tmp_path / "x.npz"), vitrail.load(JAX / "vit_token.params.npz"))


def test_an_early_attention_pool_at_the_top_is_found(tmp_path) -> None:
    config = vit_config(pool="attention", image_size=(16, 16))
    model = made(config)
    vitrail.save(model, tmp_path / "x.npz", to="big-vision")
    with np.load(tmp_path / "x.npz") as stored:
        values = {name.replace("MAPHead_0/", ""): stored[name] for name in stored}
    assert "params/probe" in values
    np.savez(tmp_path / "y.npz", **values)
    same_weights(vitrail.load(tmp_path / "y.npz"), model)


def test_fixed_positions_of_big_vision_need_no_table(tmp_path) -> None:
    config = vit_config(positions="sincos-2d", pool="mean")
    model = made(config)
    vitrail.save(model, tmp_path / "x.npz", to="big-vision")
    back = vitrail.load(tmp_path / "x.npz", image_size=config.image_size)
    assert back.config.positions == "sincos-2d"
    close(back(images_for(config)), model(images_for(config)), 1e-6)
    assert "224x224 was assumed" in vitrail.load(tmp_path / "x.npz").info.notes[0]


@pytest.mark.parametrize("size", [7, 16, 24, 32])
def test_positions_are_resized_on_load_as_the_reference_code_does(size, tmp_path) -> None:
    with np.load(JAX / "posembed_interp.npz") as stored:
        given, wanted = stored["posemb_14"], torch.tensor(stored[f"posemb_{size}"][0])
    values = narrow(given)
    np.savez(tmp_path / "x.npz", **values)
    model = vitrail.load(tmp_path / "x.npz", image_size=2 * size)
    close(model.embedding.positions.table, wanted, 1e-5)
    assert model.info.notes == (f"positions were resized from a grid of 14x14 to {size}x{size}.",)


def test_positions_without_a_class_entry_are_resized_on_load_too(tmp_path) -> None:
    with np.load(JAX / "posembed_interp.npz") as stored:
        given, wanted = stored["posemb_notok_14"], torch.tensor(stored["posemb_notok_24"][0])
    values = narrow(given)
    del values["cls"]
    np.savez(tmp_path / "x.npz", **values)
    close(vitrail.load(tmp_path / "x.npz", image_size=48).embedding.positions.table, wanted, 1e-5)


def narrow(table: np.ndarray) -> dict[str, np.ndarray]:
    """A Google file of 32 dimensions and patches of 2x2 pixels around a table of positions."""
    from vitrail.checkpoint.files import describe_model
    from vitrail.checkpoint.formats.google_names import MODERN, layout
    from vitrail.checkpoint.layout import write_layout

    name = "Transformer/posembed_input/pos_embedding"
    config = vit_config(patch_size=(2, 2), image_size=(28, 28))
    source = write_layout(
        layout(config, MODERN, position_name=name, class_entry=True), describe_model(made(config)).tensors
    )
    return {key: source[key].numpy() for key in source} | {name: table}


def test_a_scanned_file_whose_layers_disagree_is_refused(tmp_path) -> None:
    values = scanned(arrays("vit_token"))
    name = "Transformer/encoderblock/LayerNorm_0/bias"
    values[name] = np.concatenate([values[name], values[name]])
    np.savez(tmp_path / "x.npz", **values)
    with pytest.raises(CheckpointError, match="do not agree on a number of layers"):
        vitrail.load(tmp_path / "x.npz")
