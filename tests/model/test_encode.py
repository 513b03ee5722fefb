"""The pass up to the head: what is kept of it, attention maps with their gradients, and chosen patches."""

import gc

import numpy as np
import pytest
import torch

from tests.reference import transformer
from tests.tiny import POOLS, arrays, close, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail import ConfigError
from vitrail.model import attention as attention_module
from vitrail.model.attention import attention_map
from vitrail.model.patches import patchify

CONFIGS = {"vit": vit_config(), "mean": vit_config(pool="mean"), "hybrid": hybrid_config(), "resnet": resnet_config()}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_pass_is_encode_then_represent_then_classify(config) -> None:
    model, images = perturbed(config), images_for(config)
    encoded = model.encode(images, pooled_only=True)
    assert (encoded.kept, encoded.layers, encoded.attention) == (None, {}, {})
    features = model.represent(encoded.output)
    assert torch.equal(features, model.features(images))
    assert torch.equal(model.classify(features), model(images))
    close(model.classify(model.represent(model.encode(images).output)), model(images), 1e-5)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("positions", ["learned-1d", "relative"])
def test_maps_of_the_pass_are_equation_6(positions, pool) -> None:
    config = vit_config(depth=3, positions=positions, pool=pool)
    model, images = perturbed(config).double(), images_for(config).double()
    maps = model.attention_maps(images, blocks=[-1, 0], heads=[3, 1])
    assert list(maps) == [2, 0]
    z = model.encode(images, layers=[0]).layers[0].detach().numpy()
    for layer, block in enumerate(model.encoder.blocks):
        z, weights = transformer.block(z, arrays(block), 4, 1e-6, "tanh")
        if layer in maps:
            close(maps[layer], weights[:, [3, 1]], 1e-10)


def test_by_default_every_map_is_there() -> None:
    config = vit_config(depth=3)
    maps = perturbed(config).attention_maps(images_for(config))
    assert {block: tuple(weights.shape) for block, weights in maps.items()} == dict.fromkeys(range(3), (2, 4, 13, 13))


@pytest.mark.parametrize("pooled_only", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_reach_the_maps_and_are_those_of_finite_differences(pooled_only, dropout, monkeypatch) -> None:
    config = vit_config(depth=2, dropout=dropout)
    model, images = perturbed(config).double(), images_for(config).double()

    def score(block: int) -> tuple[torch.Tensor, torch.Tensor]:
        encoded = model.encode(images, attention=[block], heads=[2, 0], pooled_only=pooled_only)
        weights = encoded.attention[block]
        if weights.requires_grad:
            weights.retain_grad()
        return model.head(encoded.output)[:, 3].sum(), weights

    for block in (0, 1):
        logit, weights = score(block)
        logit.backward()
        assert weights.grad.shape == (2, 2, 13, 13)
        assert weights.grad[:, :, 0].abs().min() > 0
        if block == 1:  # the class token alone is read, and it asks with the first row
            assert not weights.grad[:, :, 1:].any()
        direction = torch.randn(weights.shape, dtype=torch.float64)
        moved = []
        for step in (1e-5, -1e-5):

            def shifted(*arguments, by=step, along=direction):
                return attention_map(*arguments) + by * along

            with monkeypatch.context() as patch, torch.no_grad():
                patch.setattr(attention_module, "attention_map", shifted)
                moved.append(score(block)[0].item())
        slope = (moved[0] - moved[1]) / 2e-5
        assert slope == pytest.approx((weights.grad * direction).sum().item(), rel=1e-6)


def live_tensors() -> list[torch.Tensor]:
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) is torch.Tensor]


def test_nothing_but_the_chosen_maps_outlives_the_pass() -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config), images_for(config)
    before = {id(tensor) for tensor in live_tensors()}
    with torch.no_grad():
        maps = model.attention_maps(images, blocks=[1], heads=[0, 3])
    survivors = [tensor for tensor in live_tensors() if id(tensor) not in before]
    assert [id(tensor) for tensor in survivors] == [id(maps[1])]
    assert maps[1].untyped_storage().nbytes() == 2 * 2 * 13 * 13 * 4  # of two heads, and no view of all four


def test_with_gradients_only_the_chosen_heads_have_a_map_in_memory() -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config), images_for(config)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor.shape) or tensor, lambda x: x):
        model.attention_maps(images, blocks=[1], heads=[0, 3])
    squares = {tuple(shape) for shape in saved if len(shape) >= 3 and shape[-1] == shape[-2] == 13}
    assert squares == {(2, 2, 13, 13), (4, 13, 13)}  # the product sees images and heads as one axis of 2 x 2


def test_a_map_does_not_change_the_answer() -> None:
    config = vit_config(depth=3, positions="relative")
    model, images = perturbed(config).double(), images_for(config).double()
    encoded = model.encode(images, attention="all", heads=[1], pooled_only=True)
    assert encoded.output.shape == (2, 1, 32)
    close(model.head(encoded.output), model(images), 1e-12)


def test_maps_come_out_of_a_pass_that_computes_its_blocks_again() -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config).train(), images_for(config)
    expected = model.attention_maps(images, blocks=[1])[1]
    model.recompute = True
    encoded = model.encode(images, attention=[1], layers=[2])
    encoded.attention[1].retain_grad()
    model.head(encoded.output).sum().backward()
    close(encoded.attention[1], expected, 0)
    assert encoded.attention[1].grad.abs().max() > 0


@pytest.mark.parametrize("pooled_only", [False, True])
def test_the_outputs_of_chosen_layers_are_those_of_the_trace(pooled_only) -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config), images_for(config)
    trace = model.trace(images)
    layers = model.encode(images, layers=[0, 2, -1], pooled_only=pooled_only).layers
    assert list(layers) == [0, 2, 3]
    for number, tokens in layers.items():
        assert torch.equal(tokens, (trace.embedded, *trace.blocks)[number])


def test_layers_are_numbered_as_the_model_lists_them() -> None:
    for config in CONFIGS.values():
        model = perturbed(config)
        layers = model.encode(images_for(config), layers="all").layers
        assert len(layers) == len(model.layers()) - 1  # all but the head


def test_the_layers_of_a_resnet_are_its_root_and_stages() -> None:
    config = resnet_config()
    model, images = perturbed(config), images_for(config)
    layers, maps = model.encode(images, layers="all").layers, model.trace(images).feature_maps
    for number, name in enumerate(["root", "stages.0.0", "stages.1.1"]):
        assert torch.equal(layers[number], maps[name])


def test_a_resnet_has_neither_maps_nor_patches() -> None:
    model, images = perturbed(resnet_config()), images_for(resnet_config())
    with pytest.raises(ConfigError, match="a ResNet has no attention maps"):
        model.attention_maps(images)
    with pytest.raises(ConfigError, match="no patches to drop"):
        model.encode(images, kept=torch.zeros(2, 3, dtype=torch.int64))


@pytest.mark.parametrize(
    "config", [vit_config(), vit_config(pool="mean"), hybrid_config()], ids=["vit", "mean", "hybrid"]
)
def test_kept_patches_are_those_rows_of_equation_1(config) -> None:
    model, images = perturbed(config), images_for(config)
    kept = torch.tensor([[5, 0, 7], [1, 2, 11]])
    first = int(bool(config.class_token))
    whole = model.encode(images, layers=[0]).layers[0]
    encoded = model.encode(images, kept=kept, layers=[0])
    assert encoded.kept is kept
    assert encoded.output.shape == (2, 3 + first, 32)
    rows = torch.stack([tokens[first:][places] for tokens, places in zip(whole, kept, strict=True)])
    close(encoded.layers[0][:, first:], rows, 1e-5)
    close(encoded.layers[0][:, :first], whole[:, :first], 1e-6)


def test_patches_that_are_left_out_do_not_matter() -> None:
    config = vit_config()
    model, images = perturbed(config), images_for(config)
    kept = torch.tensor([[5, 0, 7], [1, 2, 11]])
    pixels = patchify(images, (4, 4))
    kept_pixels = torch.stack([rows[places] for rows, places in zip(pixels, kept, strict=True)])
    other = torch.randn_like(images)
    places = patchify(torch.arange(12 * 16).reshape(1, 1, 12, 16).float(), (4, 4))[0].long()
    for image, (rows, numbers) in enumerate(zip(kept_pixels, kept, strict=True)):
        for row, number in zip(rows, numbers, strict=True):
            other[image].flatten(1)[:, places[number]] = row.unflatten(0, (3, 16))
    close(model.encode(other, kept=kept).output, model.encode(images, kept=kept).output, 1e-5)


def test_patches_are_drawn_from_the_given_generator_and_returned() -> None:
    config = vit_config()
    model, images = perturbed(config), images_for(config)

    def kept_patches(seed: int) -> torch.Tensor:
        before = torch.get_rng_state()
        encoded = model.encode(images, drop_patches=0.5, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(torch.get_rng_state(), before)
        again = model.encode(images, kept=encoded.kept)
        assert torch.equal(again.output, encoded.output)
        return encoded.kept

    one, same, other = kept_patches(1), kept_patches(1), kept_patches(2)
    assert one.shape == (2, 6)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert all(len(np.unique(row)) == 6 and 0 <= row.min() <= row.max() < 12 for row in one.numpy())


def test_without_a_generator_patches_follow_the_global_seed() -> None:
    config = vit_config()
    model, images = perturbed(config), images_for(config)
    torch.manual_seed(5)
    expected = torch.rand(2, 12).argsort(dim=1)[:, :6]
    torch.manual_seed(5)
    assert torch.equal(model.encode(images, drop_patches=0.5).kept, expected)


def test_patches_are_chosen_in_one_way_only() -> None:
    config = vit_config()
    with pytest.raises(ConfigError, match=r"both kept and drop_patches=0.5"):
        perturbed(config).encode(images_for(config), kept=torch.zeros(2, 1, dtype=torch.int64), drop_patches=0.5)


def test_kept_patches_need_positions_at_the_input() -> None:
    config = vit_config(positions="relative")
    with pytest.raises(ConfigError, match="belong to one full grid"):
        perturbed(config).encode(images_for(config), kept=torch.zeros(2, 1, dtype=torch.int64))
