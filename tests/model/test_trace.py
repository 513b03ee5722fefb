import dataclasses

import pytest
import torch

from tests.reference import transformer
from tests.tiny import arrays, close, hybrid_config, images_for, perturbed, vit_config
from vitrail import ConfigError
from vitrail.model.trace import Trace, select


@pytest.mark.parametrize(
    ("selection", "numbers"), [(None, []), ("all", [0, 1, 2]), ([2, 0], [2, 0]), ([-1], [2]), ((1,), [1]), ([], [])]
)
def test_a_selection_becomes_numbers_in_its_own_order(selection, numbers) -> None:
    assert select(selection, 3, "blocks") == numbers


def test_a_number_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="blocks 2, -1 name one twice"):
        select([2, -1], 3, "blocks")


@pytest.mark.parametrize(("selection", "wrong"), [([3], "3"), ([0, -4, 7], "-4, 7")])
def test_a_number_out_of_range_is_refused_with_the_range(selection, wrong) -> None:
    with pytest.raises(ConfigError, match=rf"blocks {wrong} to trace: there are 3, 0 to 2"):
        select(selection, 3, "blocks")


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"heads.*'each'.*'all'"):
        select("each", 3, "heads")


def test_a_trace_holds_every_step_of_the_figure() -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config), images_for(config)
    trace = model.trace(images, attention="all")
    assert {field.name for field in dataclasses.fields(Trace)} == set(vars(trace))
    assert trace.feature_maps == {}
    assert trace.patches.shape == (2, 12, 32)
    assert trace.embedded.shape == trace.encoded.shape == (2, 13, 32)
    assert [tuple(z.shape) for z in trace.blocks] == [(2, 13, 32)] * 3
    assert trace.representation.shape == (2, 32)
    assert trace.logits.shape == (2, 7)


@pytest.mark.parametrize(
    ("positions", "placement"),
    [("learned-1d", "input"), ("learned-1d", "every-layer"), ("relative", "input"), ("none", "input")],
)
def test_every_step_of_the_trace_is_its_equation(positions, placement) -> None:
    config = vit_config(depth=3, positions=positions, position_placement=placement)
    model, images = perturbed(config).double(), images_for(config).double()
    trace = model.trace(images, attention="all")
    w = arrays(model.embedding)
    z = transformer.embed(
        transformer.patchify(images.numpy(), (4, 4)),
        w["projection.weight"].T,
        w["projection.bias"],
        w["class_token"],
        w.get("positions.table"),
    )
    close(trace.embedded, z, 1e-11)
    for layer, block in enumerate(model.encoder.blocks):
        if placement == "every-layer":
            z = z + arrays(model.encoder.positions[layer])["table"]
        z, maps = transformer.block(z, arrays(block), 4, 1e-6, "tanh")
        close(trace.blocks[layer], z, 1e-10)
        close(trace.attention[layer], maps, 1e-10)
    norm = arrays(model.encoder, "norm.")
    z = transformer.layer_norm(z, norm["weight"], norm["bias"], 1e-6)
    close(trace.encoded, z, 1e-10)
    close(trace.representation, z[:, 0], 1e-10)
    head = arrays(model.head, "linear.")
    close(trace.logits, z[:, 0] @ head["weight"].T + head["bias"], 1e-10)


def test_only_the_selected_blocks_and_heads_are_kept() -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config), images_for(config)
    whole = model.trace(images, attention="all").attention
    some = model.trace(images, attention=[-1, 0], heads=[3, 1]).attention
    assert list(whole) == [0, 1, 2]
    assert list(some) == [2, 0]
    for layer, weights in some.items():
        close(weights, whole[layer][:, [3, 1]], 1e-6)
    assert model.trace(images).attention == {}


def test_a_trace_names_every_feature_map_of_a_hybrid() -> None:
    config = hybrid_config()
    model, images = perturbed(config), images_for(config)
    maps = model.trace(images).feature_maps
    assert list(maps) == ["root.conv", "root.norm", "root", "stages.0.0", "stages.1.0", "stages.1.1"]
    close(maps["stages.1.1"], model.backbone(images), 1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("settings", [{"attention": [2]}, {"attention": "last"}, {"heads": [4]}])
def test_a_model_refuses_blocks_and_heads_that_it_does_not_have(settings) -> None:
    model = perturbed(vit_config())
    with pytest.raises(ConfigError):
        model.trace(torch.zeros(1, 3, 12, 16), **settings)
