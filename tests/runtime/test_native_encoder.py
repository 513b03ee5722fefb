"""The program of the native engine against the paper's equations in NumPy, in float32 and in int8."""

import numpy as np
import pytest
import torch

from tests.reference import int8, transformer
from tests.tiny import arrays, hybrid_config, perturbed, resnet_config, vit_config
from vitrail import ConfigError, build
from vitrail.model.config import ViTConfig
from vitrail.model.mixer_settings import Pooling
from vitrail.model.rotary import RotaryConfig
from vitrail.runtime import native_encoder
from vitrail.runtime.native_encoder import NativeEncoder, native_model
from vitrail.runtime.native_library import find_compiler, load_library
from vitrail.runtime.native_team import team_of

SIZES = {
    "whole panels": {"dim": 64, "num_heads": 2, "mlp_dim": 128},
    "rest of everything": {"dim": 35, "num_heads": 5, "mlp_dim": 51},
    "one head": {"dim": 37, "num_heads": 1, "mlp_dim": 3},
    "narrow heads": {"dim": 36, "num_heads": 12, "mlp_dim": 70},
    "wide": {"dim": 840, "num_heads": 3, "mlp_dim": 40},  # more numbers than are multiplied at once
}
LENGTHS = (*range(1, 14), 33)  # every number of rows that may be left over after whole tiles
COMPILED = pytest.mark.skipif(find_compiler() is None, reason="this machine has no C++ compiler")
VNNI = pytest.mark.skipif(
    find_compiler() is None or not load_library().vitrail_int8(), reason="this processor has no products of bytes"
)
pytestmark = COMPILED


def encoder_of(config: ViTConfig, *, quantised: bool = False) -> tuple[NativeEncoder, list[dict[str, np.ndarray]]]:
    """A native encoder without the last norm, and the weights of its blocks."""
    model = perturbed(config, by=0.02)
    weights = [arrays(block) for block in model.encoder.blocks]
    return NativeEncoder(model.encoder, config, int8=quantised), weights


def tokens_for(config: ViTConfig, images: int, length: int) -> torch.Tensor:
    return torch.randn(images, length, config.dim, generator=torch.Generator().manual_seed(3)) * 2


@pytest.mark.parametrize("gelu", ["tanh", "erf", "quick"])
@pytest.mark.parametrize("name", SIZES)
def test_blocks_are_those_of_the_paper(name, gelu) -> None:
    config = vit_config(**SIZES[name], gelu=gelu, pool="mean", norm_encoded=False)
    encoder, weights = encoder_of(config)
    for length in LENGTHS:
        tokens = tokens_for(config, 2, length)
        expected = tokens.double().numpy()
        for w in weights:
            expected, _ = transformer.block(expected, w, config.num_heads, config.norm_eps, gelu)
        np.testing.assert_allclose(encoder(tokens).numpy(), expected, atol=2e-5, rtol=1e-5)


@VNNI
@pytest.mark.parametrize("gelu", ["tanh", "erf", "quick"])
@pytest.mark.parametrize("name", SIZES)
def test_blocks_in_int8_round_as_they_are_said_to(name, gelu) -> None:
    config = vit_config(**SIZES[name], depth=1, gelu=gelu, pool="mean", norm_encoded=False)
    encoder, (w,) = encoder_of(config, quantised=True)
    for length in LENGTHS:
        tokens = tokens_for(config, 2, length)
        expected = [int8.block(z, w, config.num_heads, config.norm_eps, gelu) for z in tokens.double().numpy()]
        plain, _ = transformer.block(tokens.double().numpy(), w, config.num_heads, config.norm_eps, gelu)
        rounding = np.abs(np.array(expected) - plain)
        apart = np.abs(encoder(tokens).numpy() - np.array(expected))
        # a number half way between two whole ones may become either, in float32 and in float64
        assert apart.mean() < 0.3 * rounding.mean()
        assert apart.max() < rounding.max()


@pytest.mark.parametrize("quantised", [False, pytest.param(True, marks=VNNI)])
def test_any_number_of_images_and_threads_gives_the_same_bits(quantised) -> None:
    config = vit_config(pool="mean")
    encoder, _ = encoder_of(config, quantised=quantised)
    tokens = tokens_for(config, 5, 29)
    alone = torch.cat([encoder(image[None]) for image in tokens])
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for images in (1, 2, 3, 5):
                assert torch.equal(encoder(tokens[:images]), alone[:images])
    finally:
        torch.set_num_threads(before)
    strided = tokens.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(encoder(strided), alone)
    assert torch.equal(strided, tokens)  # what goes in stays as it is


@pytest.mark.parametrize("quantised", [False, pytest.param(True, marks=VNNI)])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_not_hidden(quantised, value) -> None:
    config = vit_config(pool="mean", dim=36, num_heads=2, mlp_dim=35)
    encoder, _ = encoder_of(config, quantised=quantised)
    for place in (0, 35):  # in a whole vector, and in what is left over
        tokens = tokens_for(config, 2, 6)
        tokens[1, 2, place] = value
        out = encoder(tokens)
        assert out[0].isfinite().all()
        assert not out[1].isfinite().any()


def test_the_last_block_computes_the_class_token_alone() -> None:
    config = vit_config(layer_scale=0.3)
    model = perturbed(config)
    encoder, tokens = NativeEncoder(model.encoder, config, int8=False), tokens_for(config, 3, config.num_tokens)
    with torch.inference_mode():
        torch.testing.assert_close(
            encoder(tokens, first_only=True), model.encoder(tokens, first_only=True), atol=1e-5, rtol=1e-5
        )
    assert encoder(tokens, first_only=True).shape == (3, 1, config.dim)


@VNNI
@pytest.mark.parametrize("name", SIZES)
def test_the_class_token_alone_is_nearer_to_the_paper_in_int8_than_a_whole_block_is(name) -> None:
    config = vit_config(**SIZES[name], depth=1, norm_encoded=False)
    encoder, (w,) = encoder_of(config, quantised=True)
    tokens = tokens_for(config, 8, 33)
    plain, _ = transformer.block(tokens.double().numpy(), w, config.num_heads, config.norm_eps, config.gelu)
    whole, first = encoder(tokens)[:, :1].numpy(), encoder(tokens, first_only=True).numpy()
    assert np.abs(first - plain[:, :1]).mean() < 1.1 * np.abs(whole - plain[:, :1]).mean()


@pytest.mark.parametrize("quantised", [False, pytest.param(True, marks=VNNI)])
def test_a_class_token_alone_has_the_same_bits_for_any_number_of_threads_and_hides_nothing(quantised) -> None:
    config = vit_config()
    encoder, _ = encoder_of(config, quantised=quantised)
    tokens = tokens_for(config, 3, 29)
    answers = []
    for threads in (1, 2, 3):
        with team_of(threads):
            answers.append(encoder(tokens, first_only=True))
    assert all(torch.equal(answer, answers[0]) for answer in answers)
    tokens[1, 20, 3] = float("nan")
    assert encoder(tokens, first_only=True).isfinite().all(dim=(1, 2)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (resnet_config(), "the blocks of the paper, but the model has no encoder; choose another engine"),
        (vit_config(mixer=Pooling(), pool="mean"), "but the model has the mixer pooling; choose"),
        (vit_config(positions="relative"), "relative positions"),
        (vit_config(position_placement="every-layer"), "positions at every layer"),
        (vit_config(rotary=RotaryConfig(), mlp="swiglu"), "rotary positions and the MLP swiglu; choose another engine"),
    ],
)
def test_a_model_with_other_blocks_is_refused(config, words) -> None:
    with pytest.raises(ConfigError, match=words):
        native_model(build(config), int8=False)
    native_model(build(hybrid_config()), int8=False)


def test_int8_is_refused_where_the_processor_has_no_products_of_bytes(monkeypatch) -> None:
    class Without:
        def __getattr__(self, name):
            return (lambda: 0) if name == "vitrail_int8" else getattr(load_library(), name)

    monkeypatch.setattr(native_encoder, "load_library", Without)
    with pytest.raises(ConfigError, match=r"no instructions for products of bytes \(VNNI\)"):
        encoder_of(vit_config(), quantised=True)


def test_too_little_memory_is_one_sentence(monkeypatch) -> None:
    monkeypatch.setattr(load_library(), "vitrail_run", lambda *_: 0)
    encoder, _ = encoder_of(vit_config())
    with pytest.raises(Exception, match="not enough memory for the engine native"):
        encoder(tokens_for(vit_config(), 1, 3))
