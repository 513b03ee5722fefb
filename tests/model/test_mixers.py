"""A block takes whatever mixer it is given, and every mixer computes what its definition says."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.reference import mixers, transformer
from tests.tiny import MIXERS, arrays, close, images_for, perturbed, vit_config
from vitrail import CheckpointError, ConfigError, convert, create, load, save
from vitrail.model import encoder as encoder_module
from vitrail.model.attention import SelfAttention
from vitrail.model.build import config_of
from vitrail.model.encoder import Encoder
from vitrail.model.mixer_settings import (
    AxialAttention,
    DepthwiseConvolution,
    MixerConfig,
    Pooling,
    SparseAttention,
    TokenMlp,
    WindowAttention,
)
from vitrail.model.mixers import make_mixer
from vitrail.model.trace import MapRecorder

GROUPED = {
    "axial": (AxialAttention(), {}),
    "window 2": (WindowAttention(size=2), {"size": 2}),
    "window 3, filled up": (WindowAttention(size=3), {"size": 3}),
    "window larger than the grid": (WindowAttention(size=9), {"size": 9}),
    "sparse by rows": (SparseAttention(), {}),
    "sparse, filled up": (SparseAttention(stride=5), {"stride": 5}),
}


class MeanMixer(nn.Module):
    """Every token gets the mean of all."""

    def forward(self, tokens: Tensor, *, first_only: bool = False, **_: Any) -> Tensor:
        return tokens.mean(dim=1, keepdim=True).expand(-1, 1 if first_only else tokens.shape[1], -1)


def mixer_of(config, layer: int) -> nn.Module:
    return perturbed(config).double().encoder.blocks[layer].attention


def test_every_block_attends_by_itself() -> None:
    config = vit_config(positions="relative", dropout=0.1, attention_dropout=0.2)
    mixer = make_mixer(config, 0)
    assert isinstance(mixer, SelfAttention)
    assert (mixer.num_heads, mixer.dropout.p, mixer.attention_dropout) == (4, 0.1, 0.2)
    assert mixer.offsets.shape == (2 * config.num_tokens - 1, 32)


def test_a_layer_can_have_another_mixer(monkeypatch) -> None:
    plain = encoder_module.make_mixer
    monkeypatch.setattr(
        encoder_module, "make_mixer", lambda config, layer: MeanMixer() if layer == 1 else plain(config, layer)
    )
    encoder, tokens = Encoder(vit_config()).double().eval(), torch.randn(2, 13, 32).double()
    x, _ = transformer.block(tokens.numpy(), arrays(encoder.blocks[0]), 4, 1e-6, "tanh")
    w = arrays(encoder.blocks[1])
    normed = transformer.layer_norm(x, w["norm1.weight"], w["norm1.bias"], 1e-6)
    x = x + normed.mean(axis=1, keepdims=True)
    normed = transformer.layer_norm(x, w["norm2.weight"], w["norm2.bias"], 1e-6)
    hidden, out = w["mlp.hidden.weight"].T, w["mlp.out.weight"].T
    x = x + transformer.mlp(normed, hidden, w["mlp.hidden.bias"], out, w["mlp.out.bias"], "tanh")
    norm = arrays(encoder, "norm.")
    expected = transformer.layer_norm(x, norm["weight"], norm["bias"], 1e-6)
    close(encoder(tokens), expected, 1e-10)
    close(encoder(tokens, first_only=True), expected[:, :1], 1e-10)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("prefix", [0, 1, 3])
@pytest.mark.parametrize("case", GROUPED)
def test_grouped_attention_is_attention_to_the_patches_that_each_sees(case, prefix, layer) -> None:
    settings, pattern = GROUPED[case]
    pool = "class-token" if prefix else "mean"
    config = vit_config(mixer=settings, pool=pool, registers=max(prefix - 1, 0))
    mixer, tokens = mixer_of(config, layer), torch.randn(2, 12 + prefix, 32).double()
    pattern = {"kind": settings.kind, "layer": layer, **pattern}
    expected, maps = mixers.grouped(tokens.numpy(), arrays(mixer), 4, prefix, (3, 4), **pattern)
    close(mixer(tokens), expected, 1e-11)
    if prefix:
        close(mixer(tokens, first_only=True), expected[:, :1], 1e-11)
    mixed, weights = with_maps(mixer, tokens, [0, 3])
    close(mixed, expected, 1e-11)
    close(weights, maps[:, [0, 3]], 1e-11)


def with_maps(mixer: nn.Module, tokens: Tensor, heads: list[int]) -> tuple[Tensor, Tensor]:
    recorder = MapRecorder(heads)
    mixed = mixer(tokens, maps=recorder)
    return mixed, recorder.weights


@pytest.mark.parametrize("case", GROUPED)
def test_grouped_attention_takes_another_grid(case) -> None:
    settings, pattern = GROUPED[case]
    mixer, tokens = mixer_of(vit_config(mixer=settings), 1), torch.randn(1, 1 + 30, 32).double()
    pattern = {"kind": settings.kind, "layer": 1, **pattern}
    expected, _ = mixers.grouped(tokens.numpy(), arrays(mixer), 4, 1, (5, 6), **pattern)
    close(mixer(tokens, grid=(5, 6)), expected, 1e-11)


def test_linear_attention_is_its_definition() -> None:
    mixer, tokens = mixer_of(vit_config(**MIXERS["linear, class token"]), 0), torch.randn(2, 13, 32).double()
    expected, maps = mixers.linear(tokens.numpy(), arrays(mixer), 4)
    close(mixer(tokens), expected, 1e-11)
    close(mixer(tokens, first_only=True), expected[:, :1], 1e-11)
    mixed, weights = with_maps(mixer, tokens, [2, 0])
    close(mixed, expected, 1e-11)
    close(weights, maps[:, [2, 0]], 1e-11)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_pooling_is_the_mean_of_neighbours_minus_the_patch(size) -> None:
    mixer, patches = mixer_of(vit_config(mixer=Pooling(size=size), pool="mean"), 0), torch.randn(2, 12, 32).double()
    close(mixer(patches), mixers.pooling(patches.numpy(), (3, 4), size), 1e-12)


@pytest.mark.parametrize("size", [3, 5, 7])
def test_a_depthwise_convolution_is_its_definition(size) -> None:
    mixer = mixer_of(vit_config(mixer=DepthwiseConvolution(size=size), pool="mean"), 0)
    patches = torch.randn(2, 12, 32).double()
    close(mixer(patches), mixers.convolution(patches.numpy(), arrays(mixer), (3, 4)), 1e-12)


@pytest.mark.parametrize(("hidden", "width"), [(None, 16), (7, 7)])
def test_the_mlp_over_patches_is_its_definition(hidden, width) -> None:
    mixer = mixer_of(vit_config(mixer=TokenMlp(hidden=hidden), pool="mean"), 0)
    patches = torch.randn(2, 12, 32).double()
    assert mixer.hidden.weight.shape == (width, 12)
    close(mixer(patches), mixers.token_mlp(patches.numpy(), arrays(mixer), "tanh"), 1e-12)


def test_with_the_identity_patches_never_meet() -> None:
    model = perturbed(vit_config(**MIXERS["identity"]))
    images = images_for(model.config)
    images.requires_grad_()
    model.encode(images).output[0, 5].sum().backward()
    touched = images.grad[0].abs().sum(0).unfold(0, 4, 4).unfold(1, 4, 4).sum((2, 3)).flatten().nonzero()
    assert touched.tolist() == [[5]]


@pytest.mark.parametrize("settings", MIXERS.values(), ids=MIXERS)
def test_forward_trace_and_encode_are_one_pass(settings) -> None:
    model = perturbed(vit_config(**settings))
    images = images_for(model.config)
    attention = "all" if model.config.attention_shape[0] else None
    trace = model.trace(images, attention=attention)
    close(model(images), trace.logits, 1e-4)
    assert len(trace.attention) == model.config.attention_shape[0]
    for weights in trace.attention.values():
        close(weights.sum(dim=3), torch.ones(2, 4, model.config.num_tokens), 1e-5)


@pytest.mark.parametrize("settings", MIXERS.values(), ids=MIXERS)
def test_a_file_holds_every_mixer(settings, tmp_path) -> None:
    model = perturbed(vit_config(**settings))
    copy = load(save(model, tmp_path / "model.safetensors"))
    assert copy.config == model.config
    assert torch.equal(copy(images_for(model.config)), model(images_for(model.config)))


@pytest.mark.parametrize("kind", sorted(set(MixerConfig.members) - {"attention"}))
@pytest.mark.parametrize(
    ("format_name", "file"),
    [("google", "out.npz"), ("timm", "out"), ("huggingface", "out"), ("torchvision", "out.safetensors")],
)
def test_formats_of_others_refuse_a_mixer_by_name(kind, format_name, file, tmp_path) -> None:
    model = create("S/16", image_size=32, num_classes=3, mixer=kind, pool="mean", seed=0)
    save(model, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"a mixer other than attention over all tokens"):
        convert(tmp_path / "model.safetensors", tmp_path / file, to=format_name)
    assert not (tmp_path / file).exists()


@pytest.mark.parametrize("settings", MIXERS.values(), ids=MIXERS)
def test_every_weight_learns(settings) -> None:
    model = perturbed(vit_config(**settings)).train()
    model(images_for(model.config)).square().sum().backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert [name for name in still if "registers" not in name] == []


@pytest.mark.parametrize("settings", MIXERS.values(), ids=MIXERS)
def test_matrices_and_branches_name_weights_that_exist(settings) -> None:
    model = perturbed(vit_config(**settings))
    names = dict(model.named_parameters())
    assert set(model.matrices()) <= set(names)
    assert all(names[name].ndim == 2 for name in model.matrices())
    assert {weight for branch in model.branches() for weight in branch.weights} <= set(names)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mixer": "pooling"}, "shows the patches to no class token"),
        ({"mixer": "axial", "positions": "relative"}, "relative positions belong to attention over all tokens"),
        ({"mixer": "sparse", "num_heads": 1}, "two kinds of heads, but num_heads is 1"),
        ({"mixer": "linear", "attention_dropout": 0.1}, "has no weights to drop"),
        ({"mixer": "windows"}, "mixer is 'windows', but must be one of .*Did you mean window"),
    ],
)
def test_what_a_mixer_cannot_have_is_refused(changes, words) -> None:
    with pytest.raises(ConfigError, match=words):
        config_of(vit_config(), **changes)


@pytest.mark.parametrize("mixer", [Pooling, DepthwiseConvolution])
def test_a_neighbourhood_without_a_middle_is_refused(mixer) -> None:
    with pytest.raises(ConfigError, match=r"mixer.size is 4, but must be odd, .* choose 3 or 5"):
        mixer(size=4)


def test_patches_that_a_mixer_needs_cannot_be_dropped() -> None:
    with pytest.raises(ConfigError, match=r"the mixer 'window' needs every patch"):
        perturbed(vit_config(**MIXERS["window"]))(images_for(vit_config()), drop_patches=0.5)
    config = vit_config(**MIXERS["linear"])
    assert perturbed(config)(images_for(config), drop_patches=0.5).shape == (2, 7)


@pytest.mark.parametrize("settings", MIXERS.values(), ids=MIXERS)
def test_images_of_another_size_are_taken_or_refused_by_name(settings) -> None:
    model = perturbed(vit_config(**settings))
    images = torch.randn(2, 3, 20, 24)
    if model.config.mixer.kind == "mlp":
        with pytest.raises(ConfigError, match="has a weight for each patch"):
            model(images, any_size=True)
    else:
        assert model(images, any_size=True).isfinite().all()


def test_maps_are_refused_where_there_are_none() -> None:
    model = perturbed(vit_config(**MIXERS["pooling"]))
    with pytest.raises(ConfigError, match="the mixer 'pooling' has no attention maps"):
        model.attention_maps(images_for(model.config))


@pytest.mark.parametrize(
    ("name", "settings", "parameters"),
    [  # MLP-Mixer as timm counts it
        ("B/16", {}, 59_880_472),
        ("L/16", {}, 208_196_168),
        ("S/16", {"dim": 512, "depth": 8, "mlp_dim": 2048, "num_heads": 8}, 18_528_264),
    ],
)
def test_an_mlp_over_patches_makes_the_published_mlp_mixer(name, settings, parameters) -> None:
    model = create(name, mixer="mlp", positions="none", pool="mean", device="meta", **settings)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
