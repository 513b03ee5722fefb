"""Features of several views, and whether they have become one direction."""

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vitrail.base.ranks import Ranks
from vitrail.base.shapes import Images, Representation
from vitrail.model.contract import Model
from vitrail.training.shared_pass import pass_in_shares

Seen = Float[Tensor, "batch channel _ _"]
"""Images of one size, whatever the sizes of other views are."""
ViewFeatures = Float[Tensor, "row representation"]
"""Features of each view of each image: all images of the first view, then of the second."""


def view_features(model: Model, views: Sequence[Seen], *, threads: int = 1) -> ViewFeatures:
    """Return the features of all views, one after the other; neighbours of one size go through the model together.

    Several threads share the pass, unless the model draws random numbers in it.
    """
    passes: list[list[Tensor]] = []
    for view in views:
        if passes and passes[-1][0].shape == view.shape:
            passes[-1].append(view)
        else:
            passes.append([view])
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    threads = 1 if model.training and model.config.draws else threads
    inputs = [torch.cat(some) if len(some) > 1 else some[0] for some in passes]
    network = partial(_features, model)
    return torch.cat([pass_in_shares(network, images, weights, threads=threads) for images in inputs])


def _features(model: Model, images: Images) -> Representation:
    other_size = tuple(images.shape[2:]) != tuple(model.config.image_size)
    return model.features(images, any_size=True) if other_size else model.features(images)


@torch.no_grad()
def spread(features: Representation, ranks: Ranks) -> Float[Tensor, ""]:
    """Return how far the features of all ranks' images lie apart, from 0 to 1; near 0 they are one direction.

    Features of length 1 have the variance 1 - |mean|^2, over all images; this is its root.
    """
    total = ranks.sum(F.normalize(features.detach().float(), dim=1).sum(0))
    mean = total / (len(features) * ranks.world)
    return (1 - mean.square().sum()).clamp(min=0).sqrt()
