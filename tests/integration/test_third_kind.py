"""A third kind of model, in a few lines of a test, goes through everything without another file knowing of it."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import vitrail
from tests.verbs.making import data_file
from vitrail.model.contract import Layer, Model
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.verbs.evaluate import evaluate
from vitrail.verbs.finetune import finetune
from vitrail.verbs.train import train


@dataclass(frozen=True, kw_only=True)
class MeansConfig(ModelConfig, kind="means"):
    """A linear layer over the mean colours of some cells of an image."""

    cells: int = 2

    @property
    def feature_width(self) -> int:
        return self.channels * self.cells**2

    @property
    def summary(self) -> str:
        return "mean colours"


class Means(Model, config=MeansConfig):
    head_prefix = "out."

    def __init__(self, config: MeansConfig) -> None:
        super().__init__(config)
        self.hidden = nn.Linear(config.feature_width, config.feature_width)
        self.out = nn.Linear(config.feature_width, config.num_classes) if config.num_classes else None

    @property
    def last_linear(self) -> nn.Linear | None:
        return self.out

    def features(self, images: Tensor, *, drop_patches: float = 0.0, any_size: bool = False) -> Tensor:  # noqa: ARG002
        return self.hidden(nn.functional.adaptive_avg_pool2d(images, self.config.cells).flatten(1))

    def layers(self) -> list[Layer]:
        return [Layer(name="hidden", prefixes=("hidden.",)), Layer(name="head", prefixes=("out.",))]


def test_it_is_trained_saved_loaded_fine_tuned_and_evaluated(tmp_path: Path) -> None:
    data = data_file(tmp_path)
    size = {"kind": "means", "image_size": [8, 8], "channels": 3, "num_classes": 3}
    plain = {"optimizer.name": "adam", "schedule.peak": 0.1}
    run = train(
        data, steps=40, batch=8, image_size=8, settings={"model": size, **plain}, out=tmp_path / "run", quiet=True
    )
    assert isinstance(run.model, Means)
    assert run.model.config == MeansConfig(image_size=(8, 8), num_classes=3)
    again = vitrail.load(run.model_file, num_classes=5)
    assert again.last_linear is not None
    assert not again.last_linear.weight.any()
    tuned = finetune(data, start=run.model_file, steps=20, batch=8, rates=[0.1], out=tmp_path / "tuned", quiet=True)
    assert tuned.model.info.provenance["parent"] == run.model.info.digest
    assert run.accuracy is not None
    assert run.accuracy > 0.6
    assert evaluate(tuned.model_file, data, resamples=100).accuracy == tuned.accuracy
    assert cost(run.model.config).parameters == sum(parameter.numel() for parameter in run.model.parameters())
    assert torch.equal(tuned.model(torch.zeros(1, 3, 8, 8)), vitrail.load(tuned.model_file)(torch.zeros(1, 3, 8, 8)))
