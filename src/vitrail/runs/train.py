"""Put data, model, objective and loop together into one run, and bring it to its end."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from vitrail.base.errors import InputError
from vitrail.base.journal import Journal
from vitrail.base.memory import keep_freed_memory
from vitrail.base.ranks import Ranks
from vitrail.base.seeds import key
from vitrail.base.settings import to_dict
from vitrail.base.trackers import make_trackers
from vitrail.checkpoint.files import describe_model
from vitrail.checkpoint.store import write_store
from vitrail.data.budget import Budget
from vitrail.data.loader import Batch, evaluation_batches, training_batches
from vitrail.data.subsets import class_weights
from vitrail.evaluation.classify import Answers, answer
from vitrail.model.build import build
from vitrail.model.contract import Model
from vitrail.model.info import ModelInfo
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.folder import RunFolder
from vitrail.runs.skipped import noted
from vitrail.runs.start import starting_model
from vitrail.runtime.engine import TorchEngine
from vitrail.train.averaging import Average
from vitrail.train.cores import CORES
from vitrail.train.keeper import Keeper
from vitrail.train.loop import Loop, LoopConfig, StoppedError, Watch
from vitrail.train.objective import Classification
from vitrail.train.optimizers import freeze, make_optimizer
from vitrail.train.parallel import in_company, parallelise, shard
from vitrail.train.signals import StopSignal
from vitrail.train.state import TrainState, whole
from vitrail.train.step import StepConfig


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run that is ready to go."""

    config: RunConfig
    data: RunData
    folder: RunFolder
    ranks: Ranks
    extras: tuple[tuple[str, str], ...] = ()
    """More sections for the report: a heading, and HTML that is safe to show."""
    latest: list[Answers] = field(default_factory=list, compare=False)
    """The answers of the newest look at the held-out images; after the last step they are those of the result."""

    def check(self) -> None:
        """Refuse what cannot be trained, before anything is built."""
        share = self.ranks.share(self.config.batch)
        if self.config.batch > len(self.data.train):
            raise InputError(
                f"a batch of {self.config.batch} is more than the {len(self.data.train)} training images of "
                f"{self.config.data.where}; choose a batch of at most {len(self.data.train)}."
            )
        if self.config.optimizer.frozen:
            freeze(build(self.config.model, device="meta"), self.config.optimizer.frozen)
        if self.config.augmentation.mixes and share % 2:
            raise InputError(f"mixup and cutmix mix pairs, but each rank has {share} images; choose an even batch.")

    def loop(self, *, watch: Watch, stop: StopSignal) -> Loop:
        """Build the model and everything around it, at step 0."""
        keep_freed_memory()
        config, ranks = self.config, self.ranks
        if config.start is None:
            model = build(config.model, seed=key(config.seed, "weights") % 2**63, device=ranks.device).train()
        else:
            model = starting_model(config.start, config.model, ranks.device).train()
        model.recompute = config.execution.recompute
        freeze(model, config.optimizer.frozen)
        if self.sharded:
            shard(model, ranks)
        state = TrainState(
            model=model,
            optimizer=make_optimizer(model, config.optimizer, config.schedule.peak),
            average=None if config.averaging is None else Average(model, config.averaging),
        )
        return Loop(
            state=state,
            parallel=parallelise(model, ranks, sharded=self.sharded, compiled=config.execution.compiled),
            objective=self.objective(),
            schedule=config.schedule,
            config=LoopConfig(
                steps=config.steps,
                log_every=config.log_every,
                evaluate_every=config.evaluate_every,
                checkpoint_every=config.execution.checkpoint_every,
                patience=config.patience,
            ),
            step=StepConfig(
                micro_batch=config.execution.micro_batch or ranks.share(config.batch),
                precision=config.precision,
                clip_norm=config.optimizer.clip_norm,
                seed=config.seed,
                two_cores=self.two_cores,
            ),
            batches=self.batches,
            evaluate=partial(self.scores, stop=stop),
            keep_best=self.keep_best,
            keeper=Keeper(folder=self.folder.checkpoints, run=config.identity, keep=config.execution.keep_checkpoints),
            journal=Journal(self.folder.path, self.trackers()),
            ranks=ranks,
            stop=stop,
            watch=watch,
        )

    @property
    def sharded(self) -> bool:
        """Whether ranks hold parts of the model; one alone holds all of it."""
        return self.config.execution.shard and self.ranks.world > 1

    @property
    def two_cores(self) -> bool:
        """Whether two cores compute half of a batch each: on a CPU with two threads, where nothing is random."""
        config = self.config
        plain = not (
            config.model.draws or config.drop_patches or config.execution.compiled or config.execution.recompute
        )
        alone = self.ranks.world == 1 and self.ranks.device.type == "cpu" and torch.get_num_threads() == CORES
        return plain and alone and config.precision == "float32"

    def objective(self) -> Classification:
        """Say what is minimised."""
        config = self.config
        weights = class_weights(self.data.train.counts) if config.loss.class_weights else None
        return Classification(
            loss=config.loss,
            preprocessing=config.preprocessing,
            num_classes=config.model.num_classes,
            weights=None if weights is None else torch.as_tensor(weights, dtype=torch.float32),
            drop_patches=config.drop_patches,
        )

    def trackers(self) -> tuple[Any, ...]:
        """Open what else wants to see the metrics; only the first rank tells them."""
        if not self.ranks.first:
            return ()
        return make_trackers(self.config.execution.track, self.folder.path, to_dict(self.config))

    @property
    def allowance(self) -> Budget | None:
        """How many broken images may be passed over; None ends the run at the first."""
        return Budget.parse(self.config.data.skip_broken).left(len(self.data.train), self.data.train.skipped)

    @property
    def skipped_file(self) -> Path:
        """Where this rank lists what it has passed over."""
        return self.folder.path / ("skipped.jsonl" if self.ranks.first else f"skipped-{self.ranks.rank}.jsonl")

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield this rank's batches from a step on, through the stages of growing images."""
        config = self.config
        stages = [
            training_batches(
                self.data.train,
                image_size=size,
                augmentation=config.augmentation,
                batch=config.batch,
                seed=config.seed,
                start_step=max(start, begin),
                stop_step=end,
                rank=self.ranks.rank,
                world=self.ranks.world,
                workers=config.execution.workers,
                channels=config.model.channels,
                skip_broken=self.allowance,
                balanced=config.data.balanced,
            )
            for begin, end, size in config.phases
            if end > start
        ]
        return noted(itertools.chain.from_iterable(stages), self.data.train, self.skipped_file)

    def answers(self, model: nn.Module, *, stop: StopSignal | None = None) -> Answers | None:
        """Ask the model about the held-out images."""
        held = self.data.held
        if held is None:
            return None
        batch = max(self.config.batch // self.ranks.world, 1)
        batches = evaluation_batches(
            held,
            self.config.preprocessing,
            batch=batch,
            rank=self.ranks.rank,
            world=self.ranks.world,
            workers=self.config.execution.workers,
            skip_broken=self.allowance,
        )
        batches = noted(batches, held, self.skipped_file)
        if stop is not None:
            batches = _until(batches, stop)
        if self.sharded:
            forwards = -(-len(held) // (self.ranks.world * batch))
            size = (1, self.config.model.channels, *self.config.preprocessing.image_size)
            batches = in_company(batches, model, forwards, torch.zeros(size, device=self.ranks.device))
        engine = TorchEngine(cast("Model", model), self.config.preprocessing)
        return answer(engine.logits, batches, held.targets, self.ranks)

    def scores(self, model: nn.Module, *, stop: StopSignal | None = None) -> dict[str, float]:
        """Score the model on the held-out images, if there are any; one rank alone may be asked to stop meanwhile."""
        answers = self.answers(model, stop=stop if self.ranks.world == 1 else None)
        if answers is None:
            return {}
        self.latest[:] = [answers]
        scores = {"accuracy": answers.accuracy, "loss": answers.loss}
        return scores | ({"top5": answers.top5} if self.data.classes > 5 else {})

    def keep_best(self, state: TrainState) -> None:
        """Write the model as it is now, where early stopping will want it back."""
        if self.config.patience is not None:
            weights = {name: whole(tensor) for name, tensor in state.model.state_dict().items()}
            if self.ranks.first:
                self.write_model(weights, self.folder.best, {})
            self.ranks.wait()

    def write_model(self, weights: dict[str, torch.Tensor], path: Path, provenance: dict[str, Any]) -> str:
        """Write weights with labels, preprocessing and where they come from."""
        model = build(self.config.model, device="meta")
        model.load_state_dict({name: tensor.cpu() for name, tensor in weights.items()}, assign=True)
        model.info = ModelInfo(labels=self.config.data.labels)
        parent = {} if self.config.start is None else {"parent": self.config.start.digest}
        contents = describe_model(
            model,
            preprocessing=self.config.preprocessing,
            provenance=provenance | parent | {"config": to_dict(self.config)},
        )
        return write_store(contents, path)


def _until(batches: Iterable[Batch], stop: StopSignal) -> Iterator[Batch]:
    for batch in batches:
        if stop.number is not None:
            raise StoppedError("stopped while looking at held-out images.")
        yield batch
