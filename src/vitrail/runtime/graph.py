"""A model as other runtimes run it: pixels in, named outputs; what torch.export makes a program of."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.shapes import Images
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.trace import Selection, select
from vitrail.runtime.card import Entry
from vitrail.runtime.engine import Merged
from vitrail.runtime.fitting import fit

TOP = 5
"""Classes that the outputs `top_classes` and `top_probabilities` have, the most probable first."""


class Graph(nn.Module):
    """A model with its preprocessing in front and readable answers behind."""

    def __init__(
        self,
        model: Model,
        preprocessing: Preprocessing,
        *,
        entry: Entry = "pixels",
        attention: Sequence[int] = (),
        merge_tokens: int = 0,
    ) -> None:
        """`attention` has the blocks whose maps are outputs; each block merges `merge_tokens` tokens into others."""
        super().__init__()
        if attention and merge_tokens:
            raise ConfigError(
                "merged tokens have no attention maps of patches; leave out `attention`, or do not merge."
            )
        self.model, self.preprocessing, self.entry = model, preprocessing, entry
        self.attention = tuple(attention)
        self.features = (Merged(model, merge_tokens) if merge_tokens else model).features
        scale = [1 / (255 * std) for std in preprocessing.std]
        shift = [-mean / std for mean, std in zip(preprocessing.mean, preprocessing.std, strict=True)]
        self.register_buffer("scale", torch.tensor(scale)[:, None, None])
        self.register_buffer("shift", torch.tensor(shift)[:, None, None])

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """Return logits, probabilities, the first classes and the representation; of a model without classes, that."""
        inputs = self.normalised(images)
        outputs: dict[str, Tensor] = {}
        if self.attention:
            encoded = self.model.encode(inputs, attention=self.attention)
            representation = self.model.represent(encoded.output)
            outputs["attention"] = torch.stack([encoded.attention[block] for block in self.attention], dim=1)
            outputs["pooling"] = self.model.pool_weights(encoded.output)
        else:
            representation = self.features(inputs)
        if self.model.last_linear is not None:
            logits = self.model.classify(representation)
            probabilities = logits.softmax(dim=1)
            top = probabilities.topk(min(TOP, logits.shape[1]), dim=1)
            outputs = {
                "logits": logits,
                "probabilities": probabilities,
                "top_probabilities": top.values,
                "top_classes": top.indices,
            } | outputs
        return outputs | {"representation": representation}

    def normalised(self, images: Tensor) -> Images:
        """Turn what goes in into the model's input."""
        if self.entry == "input":
            return images
        planes = images.permute(0, 3, 1, 2).to(torch.float32)
        if self.entry == "image":
            planes = fit(planes, self.preprocessing)
        return torch.addcmul(self.get_buffer("shift"), planes, self.get_buffer("scale"))

    @property
    def names(self) -> list[str]:
        """The outputs, in order."""
        classes = ["logits", "probabilities", "top_probabilities", "top_classes"]
        maps = ["attention", "pooling"] if self.attention else []
        return [*(classes if self.model.last_linear is not None else []), *maps, "representation"]


def attention_blocks(config: ModelConfig, selection: Selection) -> tuple[int, ...]:
    """Return the blocks whose attention maps a graph will have, in order; refuse a model without them."""
    depth = config.attention_shape[0]
    if selection is not None and not depth:
        raise ConfigError(f"a {config.noun} of this kind has no attention maps; leave out `attention`.")
    return tuple(sorted(select(selection, depth, "blocks")))


def make_program(graph: Graph) -> ExportedProgram:
    """Record the pass of a model for any number of images, and, where whole images go in, for any size of them."""
    config, how = graph.model.config, graph.preprocessing
    batch = Dim("batch", min=1, max=2**16)
    sizes: Mapping[int, object] = {0: batch}
    if graph.entry == "input":
        example = torch.zeros(2, config.channels, *config.image_size)
    elif graph.entry == "pixels":
        example = torch.zeros(2, *config.image_size, config.channels, dtype=torch.uint8)
    else:
        example = torch.zeros(2, 37 + how.image_size[0], 41 + how.image_size[1], config.channels, dtype=torch.uint8)
        sizes = {0: batch, 1: Dim("height", min=1, max=2**16), 2: Dim("width", min=1, max=2**16)}
    try:
        with torch.no_grad():
            return export(graph.eval(), (example,), dynamic_shapes=({**sizes},), strict=False)
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:  # torch's own have no class in common
        raise InputError(
            f"torch.export cannot record the pass of this {config.noun} ({' '.join(str(error).split())[:200]}); a "
            "graph needs a pass whose steps do not depend on the numbers in an image."
        ) from error
