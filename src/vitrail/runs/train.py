"""Put data, model, objective and loop together into one run, and bring it to its end."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from vitrail.base.errors import InputError
from vitrail.base.journal import Journal
from vitrail.base.memory import check_memory, keep_freed_memory
from vitrail.base.ranks import Ranks, ranks_here
from vitrail.base.seeds import key
from vitrail.base.settings import to_dict
from vitrail.base.trackers import make_trackers
from vitrail.data.budget import Budget
from vitrail.data.loader import Batch, training_batches
from vitrail.model.build import build
from vitrail.model.contract import Model
from vitrail.report.section import Section
from vitrail.runs.config import RunConfig, checkpoint_settings
from vitrail.runs.data import RunData
from vitrail.runs.evaluator import RunEvaluator
from vitrail.runs.first_head import fit_head
from vitrail.runs.folder import RunFolder
from vitrail.runs.held_out import HeldOut
from vitrail.runs.model_file import write_model
from vitrail.runs.plan import training_bytes
from vitrail.runs.skipped import noted
from vitrail.runs.start import starting_model
from vitrail.runs.unlabelled import unlabelled
from vitrail.training.averaging import Average
from vitrail.training.keeper import Keeper
from vitrail.training.learner import Learner, Task, make_learner
from vitrail.training.loop import Loop, LoopConfig, Watch
from vitrail.training.optimizers import freeze, make_optimizer
from vitrail.training.pacing import Pacer
from vitrail.training.parallel import parallelise, shard
from vitrail.training.signals import StopSignal
from vitrail.training.state import TrainState, whole
from vitrail.training.step import StepConfig

UNPLANNED = 1000
"""How many times more steps than planned a run with minutes may take at most."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run that is ready to go."""

    config: RunConfig
    data: RunData
    folder: RunFolder
    ranks: Ranks
    further: tuple[RunEvaluator[Any], ...] = ()
    """Evaluators beside that of the classifier."""
    began: float | None = field(default=None, compare=False)
    """When the caller began to wait, by the monotonic clock: minutes count from then; None is when training begins."""
    sections: tuple[Section, ...] = ()
    """Sections of the report about what preceded the run."""
    report: bool = True
    """Whether it ends with a report; the cells of a study have one page together."""

    def check(self) -> None:
        """Refuse a run that cannot be trained, before anything is built."""
        share = self.ranks.share(self.config.batch)
        if self.config.batch > len(self.data.train):
            raise InputError(
                f"a batch of {self.config.batch} is more than the {len(self.data.train)} training images of "
                f"{self.config.data.where}; choose a batch of at most {len(self.data.train)}."
            )
        if self.ranks.device.type == "cpu" and not self.sharded:
            images = self.config.execution.micro_batch or share
            subject = f"training {self.config.model.summary} with {images} images at once"
            check_memory(training_bytes(self.config, images) * ranks_here(), subject)
        if self.config.optimizer.frozen:
            freeze(self.learner(build(self.config.model, device="meta")), self.config.optimizer.frozen)
        self.unlabelled()  # refuses a probe without labels
        at_once = self.config.execution.micro_batch or share
        self.config.objective.check_batch(self.config.batch, whole=at_once >= share)
        if self.config.augmentation.mixes and self.ranks.world > 1 and share % 2:
            raise InputError(
                f"each rank has {share} images in a step, but `mixup` and `cutmix` mix pairs; choose a `batch` that "
                f"is a multiple of {2 * self.ranks.world}, or 0 for both."
            )

    def loop(self, *, watch: Watch, stop: StopSignal) -> Loop:
        """Build the model and everything around it, at step 0."""
        keep_freed_memory()
        config, ranks = self.config, self.ranks
        if config.start is None or config.extends is not None:  # a state to extend has the weights
            model = build(config.model, seed=key(config.seed, "weights") % 2**63, device=ranks.device)
        else:
            model = starting_model(config.start, config.model, ranks.device)
            if config.start.head == "regression":
                fit_head(model, self.data.train, config.preprocessing, ranks, self.allowance)
        model.recompute = config.execution.recompute
        learner = self.learner(model)
        freeze(learner, config.optimizer.frozen)
        if self.sharded:
            shard(learner, ranks)
        state = TrainState(
            learner=learner,
            optimizer=make_optimizer(learner, config.optimizer, config.schedule.peak),
            average=None if config.averaging is None else Average(learner, config.averaging),
        )
        return Loop(
            state=state,
            parallel=parallelise(learner, ranks, sharded=self.sharded, compiled=config.execution.compiled),
            schedule=config.schedule,
            config=LoopConfig(
                steps=config.steps,
                log_every=config.log_every,
                checkpoint_every=config.execution.checkpoint_every,
                patience=config.patience,
            ),
            step=StepConfig(
                micro_batch=config.execution.micro_batch or ranks.share(config.batch),
                precision=config.precision,
                clip_norm=config.optimizer.clip_norm,
                seed=config.seed,
                shares=self.threads if learner.divisible else 1,
                threads=self.threads,
            ),
            batches=self.batches,
            evaluators=self.evaluators(stop),
            keep_best=self.keep_best,
            keeper=Keeper(
                folder=self.folder.checkpoints,
                run=config.identity,
                settings=checkpoint_settings(config),
                keep=config.execution.keep_checkpoints,
            ),
            journal=Journal(self.folder.path, self.trackers()),
            ranks=ranks,
            stop=stop,
            watch=watch,
            pacer=self.pacer(),
        )

    def pacer(self) -> Pacer | None:
        """Return the pacer that keeps a run to its minutes; None without a limit."""
        config = self.config
        if config.minutes is None:
            return None
        seconds, steps = 60 * config.minutes, config.steps - config.first_step
        images = self.data.held_out / 3  # evaluating an image takes a third of the time of training on it
        return Pacer(
            seconds=seconds,
            steps=config.steps,
            first=config.first_step,
            stages=config.stage_costs,
            evaluate_every=config.evaluate_every,
            evaluation=images / config.batch * seconds / steps,
            path=self.folder.pace,
            ranks=self.ranks,
        )

    @property
    def sharded(self) -> bool:
        """Whether ranks hold parts of the model; one alone holds all of it."""
        return self.config.execution.shard and self.ranks.world > 1

    @property
    def threads(self) -> int:
        """Threads that may take shares of a batch: those of one rank on a CPU, in a plain step."""
        config = self.config
        plain = not (config.execution.compiled or config.execution.recompute)
        alone = self.ranks.world == 1 and self.ranks.device.type == "cpu"
        return torch.get_num_threads() if plain and alone else 1

    def learner(self, model: Model) -> Learner:
        """Make the learner of the run's objective around a model."""
        config = self.config
        counts = tuple(int(count) for count in self.data.train.counts)
        task = Task(
            preprocessing=config.preprocessing,
            counts=counts,
            images=len(self.data.train),
            batch=config.batch,
            seed=config.seed,
            ranks=self.ranks,
            threads=self.threads,
        )
        return make_learner(config.objective, model, task, seed=key(config.seed, "learner") % 2**63)

    def trackers(self) -> tuple[Any, ...]:
        """Open the trackers, on the first rank only."""
        if not self.ranks.first:
            return ()
        return make_trackers(self.config.execution.track, self.folder.path, to_dict(self.config))

    @property
    def allowance(self) -> Budget | None:
        """How many broken images may be skipped; None ends the run at the first."""
        return Budget.parse(self.config.data.skip_broken).left(len(self.data.train), self.data.train.skipped)

    @property
    def skipped_file(self) -> Path:
        """Where this rank lists skipped images."""
        return self.folder.path / ("skipped.jsonl" if self.ranks.first else f"skipped-{self.ranks.rank}.jsonl")

    def batches(self, start: int) -> Iterator[Batch]:
        """Yield this rank's batches from a step on, through the stages of growing images."""
        config, *before, (first, end, size) = self.config, *self.config.phases
        last = end if config.minutes is None else end * UNPLANNED
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
                views=config.objective.views(replace(config.model, image_size=size)),
            )
            for begin, end, size in (*before, (first, last, size))
            if end > start
        ]
        return noted(itertools.chain.from_iterable(stages), self.data.train, self.skipped_file)

    def evaluators(self, stop: StopSignal | None = None) -> tuple[RunEvaluator[Any], ...]:
        """Return all evaluators; a single rank can be stopped during an evaluation."""
        held_out = self.held_out(stop if self.ranks.world == 1 else None)
        return (() if held_out is None else (held_out,)) + self.unlabelled() + self.further

    def unlabelled(self) -> tuple[RunEvaluator[Any], ...]:
        """Return the evaluators of a run without labels: completed images, and a probe of the features."""
        return unlabelled(self.config, self.data, self.folder, self.ranks, self.allowance)

    def held_out(self, stop: StopSignal | None = None) -> HeldOut | None:
        """Return the evaluator of a classifier, if there are images for it."""
        config = self.config
        if self.data.evaluation is None or not config.objective.needs_labels:
            return None
        return HeldOut(
            every=config.evaluate_every,
            dataset=self.data.evaluation,
            preprocessing=config.preprocessing,
            batch=max(config.batch // self.ranks.world, 1),
            workers=config.execution.workers,
            ranks=self.ranks,
            allowance=self.allowance,
            skipped_file=self.skipped_file,
            sharded=self.sharded,
            model_file=self.folder.model,
            stop=stop,
        )

    def keep_best(self, state: TrainState) -> None:
        """Write the present model, for early stopping to return to."""
        if self.config.patience is not None:
            weights = {name: whole(tensor) for name, tensor in state.learner.saved.state_dict().items()}
            if self.ranks.first:
                write_model(self.config, weights, self.folder.best, {})
            self.ranks.wait()
