"""Pre-train a model on images without labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from vitrail.base.errors import ConfigError
from vitrail.recipes.names import find_pretraining
from vitrail.runs.config import RunConfig
from vitrail.runs.data import absolute, absolute_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Recipe
from vitrail.selfsup.objective import Probe
from vitrail.verbs.frame import training_frame
from vitrail.verbs.keywords import PretrainKeywords
from vitrail.verbs.request import make_request
from vitrail.verbs.settle import ScratchRequest, conduct_training, stored_execution
from vitrail.verbs.trained import TrainedRun

File = str | Path


@dataclass(frozen=True, kw_only=True)
class PretrainRequest(ScratchRequest):
    """The keywords of `vitrail.pretrain`."""

    others: Sequence[File] = ()
    """More data to learn from beside the first."""
    objective: str | None = None
    """What is learned without labels: masked-patch, mae, dino, moco."""
    probe: Probe | None = None
    """How features are measured as training goes: fewshot, neighbours, none."""

    @property
    def needs_labels(self) -> bool:
        """Whether a new run needs the classes of its images: never."""
        return False

    def find_recipe(self) -> Recipe:
        """Return a recipe for images without labels, or the rule of the objective."""
        return find_pretraining(self.recipe, self.objective, self.size)

    def new_data(self) -> DataConfig:
        """Return which data a new run takes."""
        return absolute_data(replace(super().new_data(), others=tuple(map(str, self.others))))

    def moved(self, config: RunConfig) -> RunConfig:
        """Return a stored run with the places where its data are now, if they were requested."""
        config = super().moved(config)
        others = tuple(absolute(str(where)) for where in self.others)
        return replace(config, data=replace(config.data, others=others)) if others else config

    def refuse(self, names: Sequence[str], way: str) -> None:
        """Refuse keywords that a stored run has no use for any more."""
        super().refuse((*names, "objective"), way)


def pretrain(
    data: File | Sequence[File] | None = None, *, quiet: bool = False, **keywords: Unpack[PretrainKeywords]
) -> TrainedRun:
    """Train a model on images without labels, of one place or several; what is not given follows from them by a rule.

        >>> run = vitrail.pretrain("sample", steps=2, batch=8, fraction=0.01, out="pretrained", quiet=True)
        >>> run.result.steps, run.config.objective.kind, run.model.config.num_classes
        (2, 'masked-patch', 0)

    `data` is a folder of photos in any order (searched through all its folders), a CSV, shards, arrays: whatever
    `vitrail.data.open` opens, with labels or without, or a list of such; None is the embedded sample. `objective` is
    what is learned: "masked-patch" (the paper's), "mae", "dino" or "moco"; `probe` how features are measured meanwhile:
    "fewshot" with labels, "neighbours" without. The other keywords are the flags of `vitrail pretrain`. The run writes
    the same folder and report as `vitrail.train`, and a model without a head, which `finetune`, `fewshot` and `convert`
    take.
    """
    places = [data] if data is None or isinstance(data, str | Path) else list(data)
    if not places:
        raise ConfigError("`data` is an empty list, but takes at least one folder, file or name of data.")
    request = make_request(PretrainRequest, places[0], {**keywords, "others": tuple(places[1:])})
    with training_frame(request.threads, request.device, stored_execution(request)) as (ranks, stop):
        return conduct_training(request, ranks, stop, quiet=quiet)
