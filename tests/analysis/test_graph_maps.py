"""Attention of a graph by its outputs, beside the model itself; torch stands in for the runtime."""

import numpy as np
import pytest
import torch

from tests.tiny import LATER, hybrid_config, perturbed, vit_config
from vitrail import ConfigError, Preprocessing
from vitrail.analysis.methods import (
    MethodSettings,
    applicable,
    best_method,
    cells_of,
    check_method,
    check_settings,
    heat_maps,
)
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.graph import Graph
from vitrail.runtime.graph_engine import GraphEngine
from vitrail.runtime.write import make_card

FAMILIES = {
    "class token": vit_config(),
    "mean": vit_config(pool="mean"),
    "attention pool": vit_config(pool="attention", class_token=True),
    "class token beside the mean": vit_config(**LATER["class token beside the mean"]),
    "distilled": vit_config(**LATER["distilled"]),
    "hybrid": hybrid_config(),
}


class TorchSession:
    """The graph of a model, run by torch."""

    name, version, kind, properties = "torch", torch.__version__, "uint8", {}
    shape, output_shapes = (None, None, None, None), ()

    def __init__(self, graph: Graph) -> None:
        self.graph, self.outputs = graph.eval(), tuple(graph.names)

    def run(self, images: np.ndarray, outputs) -> list[np.ndarray]:
        with torch.no_grad():
            answers = self.graph(torch.from_numpy(images))
        assert list(answers) == list(self.outputs)
        return [answers[name].numpy() for name in outputs]


def both(config, attention=None) -> tuple[GraphEngine, TorchEngine]:
    model, channels = perturbed(config), config.channels
    how = Preprocessing(image_size=config.image_size, mean=(0.4,) * channels, std=(0.3,) * channels)
    card = make_card(model, how, entry="pixels", attention=attention, labels=None, source=None)
    graph = GraphEngine(
        TorchSession(Graph(model, how, attention=card.attention_blocks)),
        how,
        num_outputs=card.num_classes,
        feature_width=card.feature_width,
        source="",
        card=card,
    )
    return graph, TorchEngine(model, how)


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_rollout_and_occlusion_are_those_of_the_model(name) -> None:
    graph, engine = both(FAMILIES[name], attention="all")
    pixels = torch.randint(0, 256, (2, 3, *engine.preprocessing.image_size), dtype=torch.uint8)
    classes = torch.tensor([1, 3])
    for method, settings in (
        ("attention", MethodSettings()),
        ("attention", MethodSettings(layer=0, head=2)),
        ("rollout", MethodSettings()),
        ("occlusion", MethodSettings()),
    ):
        check_method(method, graph)
        ours = heat_maps(method, graph, pixels, classes, settings).maps
        torch.testing.assert_close(ours, heat_maps(method, engine, pixels, classes, settings).maps)
    assert cells_of(graph) == cells_of(engine)
    assert best_method(graph) == (
        "occlusion",
        "a graph has no gradients, so parts of the image are covered one after the other.",
    )


def test_what_a_graph_does_not_have_is_refused_with_what_to_do() -> None:
    some, none = both(vit_config(), attention=[-1])[0], both(vit_config())[0]
    assert (applicable(some), applicable(none)) == (("attention", "occlusion"), ("occlusion",))
    for graph, method, words in (
        (some, "rollout", "rollout needs the attention maps of every block as an output; export the model again with"),
        (none, "attention", "attention needs the attention maps of a block as an output; export the model again with"),
        (some, "gradient-attention", "gradient-attention needs gradients, which a graph does not have; choose one of"),
    ):
        with pytest.raises(ConfigError, match=words):
            check_method(method, graph)
    for settings, words in (
        (MethodSettings(layer=0), "`layer` is 0, but the file has attention maps of block 1 only"),
        (MethodSettings(layer=5), "layer is 5, but the model has 2: 0 to 1"),
        (MethodSettings(head=4), "head is 4, but the model has 4: 0 to 3"),
    ):
        with pytest.raises(ConfigError, match=words):
            check_settings(settings, ("attention",), some)
    check_settings(MethodSettings(layer=1, head=0), ("attention",), some)


def test_merged_tokens_have_no_maps_of_patches() -> None:
    model = perturbed(vit_config())
    with pytest.raises(ConfigError, match="leave out `attention`, or do not merge"):
        Graph(model, Preprocessing(image_size=(12, 16)), attention=(0,), merge_tokens=2)
