"""The first head of a model that is fine-tuned with few labels: a classifier of its features as they are.

images -> features of the pre-trained model -> logistic regression -> the last linear layer (Kumar et al., 2022)

With a head of zeros (App. B.1.1), few images first change the features in ways that help them alone.
"""

import numpy as np
import torch

from vitrail.base.ranks import Ranks
from vitrail.data.budget import Budget
from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.extractor import Extractor
from vitrail.evaluation.probe import fit_probe
from vitrail.model.contract import Model
from vitrail.runtime.engine import TorchEngine

STRENGTH = 0.01
"""C of the regression: how much the images count beside small weights."""
MOST_IMAGES = 4_000
"""Images whose features are computed; of more, this many from all over the data."""


def fit_head(
    model: Model, dataset: Dataset, preprocessing: Preprocessing, ranks: Ranks, skip_broken: Budget | None
) -> None:
    """Give a model the head that fits the features of the training images; every rank finds the same."""
    linear = model.last_linear
    rows = np.flatnonzero(dataset.targets > UNLABELLED)
    if linear is None or not len(rows):
        return
    chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(MOST_IMAGES, len(rows))).astype(int))]
    training = model.training
    engine = TorchEngine(model, preprocessing)
    features = Extractor(engine=engine, preprocessing=preprocessing, ranks=ranks)(
        dataset.take(chosen), skip_broken=skip_broken
    )
    model.train(training)
    targets = dataset.targets[chosen][features.read]
    probe = fit_probe(features.values[features.read], targets, linear.out_features, c=STRENGTH)
    weights = (probe.weights / probe.whitening.std[:, None]).mT
    with torch.no_grad():
        linear.weight.copy_(weights)
        linear.bias.copy_(probe.bias - weights @ probe.whitening.mean)
