"""From a request for a run that begins with random weights to the run: a new one, a stored one, a longer one."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.printable import line
from vitrail.base.ranks import Ranks
from vitrail.base.reading import read_json
from vitrail.model.mixer_settings import MixerName
from vitrail.recipes.names import find_recipe
from vitrail.runs.conduct import conduct
from vitrail.runs.config import RunConfig, differences, read_config
from vitrail.runs.data import RunData, check_same, open_run_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Recipe
from vitrail.runs.execution import Execution
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import Request, complete, evaluate_every
from vitrail.runs.speed import largest_micro_batch, steps_for
from vitrail.runs.train import Run
from vitrail.training.signals import StopSignal
from vitrail.verbs.extend import extended_folder, settle_extension
from vitrail.verbs.frame import set_aside
from vitrail.verbs.request import LENGTHS, RunRequest
from vitrail.verbs.trained import TrainedRun
from vitrail.verbs.watch import Watcher, Words, print_choices

FEW = 4_000
"""Training images below which a run is told of the backbone."""
FEW_PHOTOS = (
    "on few photos, `vitrail finetune` (vitrail.finetune in Python) likely does better, since it begins with a "
    "pre-trained backbone: with 20 photos of each of 20 new classes 56.0% against 29.6%, each in 45 seconds."
)


@dataclass(frozen=True, kw_only=True)
class ScratchRequest(RunRequest):
    """The keywords of a run that begins with random weights."""

    model: str | None = None
    """A model of the paper, such as S/16, R50+B/16 or R50x1."""
    mixer: MixerName | None = None
    """How the tokens of a block mix."""
    channels: int | None = None
    """Channels of the images: 3 makes grey ones coloured, 1 makes coloured ones grey."""
    config: str | Path | None = None
    """Settings to run again: the config.json of a run."""
    extend: str | Path | None = None
    """A run to train for longer, as a new one that begins with its state: for `steps`, `epochs` or `minutes` more."""

    def find_recipe(self) -> Recipe:
        """Return the recipe, or the rule, that decides everything that is not requested."""
        return find_recipe(self.recipe, self.size)


def conduct_training(
    request: ScratchRequest,
    ranks: Ranks,
    stop: StopSignal,
    *,
    quiet: bool = False,
    words: Words = str,
    report: bool = True,
) -> TrainedRun:
    """Settle a request and bring its run to the end, with a report or without one; every rank calls it."""
    run, quiet = replace(settle(request, ranks), report=report), quiet or not ranks.first
    if not quiet:
        print_choices(run, words)
        if _few_photos(request, run):
            line(f"vitrail: {FEW_PHOTOS}")
    with Watcher(run.config, quiet=quiet, words=words) as watcher:
        if request.restart:
            set_aside(run.folder, ranks, watcher.note)
        title = "Trained" if run.config.objective.needs_labels else "Pre-trained"
        return TrainedRun(folder=run.folder.path, result=conduct(run, watcher, stop), title=title)


def _few_photos(request: ScratchRequest, run: Run) -> bool:
    """Return whether a new run on few colour images has the model of the rule: the backbone would serve it better."""
    chosen = request.recipe or request.model or request.config or request.extend or request.resume
    coloured = run.config.model.channels == 3 and run.data.train.channels == 3
    return not chosen and run.config.objective.needs_labels and coloured and len(run.data.train) < FEW


def settle(request: ScratchRequest, ranks: Ranks) -> Run:
    """Decide everything that was not requested, and return the run; nothing is trained or written yet.

    Every rank calls it. With `minutes`, or an automatic micro-batch, some steps are tried out and thrown away.
    """
    began = time.monotonic()
    if request.extend is not None:
        request.refuse(("model", "channels", "config", "resume"), "extend")
        folder = RunFolder(path=Path(request.out or extended_folder(request.extend)))
        config, data = settle_extension(request, request.extend, folder, ranks)
    else:
        config, data = _stored(request) if _is_stored(request) else _new(request, ranks)
        folder = _folder(request, config)
    run = Run(config=config, data=data, folder=folder, ranks=ranks, began=began)
    run.check()
    if folder.config.is_file() and folder.begun and not request.restart:
        stored = folder.read_config()
        if not differences(config, stored):  # another run is refused for its settings
            check_same(data, stored, same_data=request.same_data)
    return run


def stored_execution(request: ScratchRequest) -> Execution | None:
    """Return how the work of a stored run was done, before ranks and threads are settled; None for a new run."""
    if request.extend is not None:
        return RunFolder(path=Path(request.extend)).read_config().execution
    return _read_stored(request).execution if _is_stored(request) else None


def _new(request: ScratchRequest, ranks: Ranks) -> tuple[RunConfig, RunData]:
    data_config, recipe = request.new_data(), request.find_recipe()
    data = open_run_data(data_config, seed=request.first_seed, needs_labels=request.needs_labels)
    draft = Request(
        recipe=recipe,
        labels=request.needs_labels,
        model=request.model,
        image_size=request.size,
        channels=request.channels,
        steps=request.steps,
        epochs=request.epochs,
        changes=request,
    )
    config = complete(draft, data_config, data)
    trial = Run(config=config, data=data, folder=_folder(request, config), ranks=ranks)
    if request.micro_batch == "auto":
        draft = replace(draft, changes=replace(request, micro_batch=largest_micro_batch(trial)))
        trial = replace(trial, config=complete(draft, data_config, data))
    if request.minutes is None:
        return trial.config, data
    return _timed(request.minutes, request.restart, draft, data_config, trial), data


def _timed(minutes: float, restart: bool, draft: Request, data_config: DataConfig, trial: Run) -> RunConfig:
    """Return the run with as many steps as fit into a time, or as many as it has when it was begun before."""
    folder, batch, cadence = trial.folder, trial.config.batch, draft.changes.cadence
    stored = folder.read_config().steps if folder.config.is_file() and folder.begun and not restart else None
    steps = stored or steps_for(
        trial, minutes, lambda steps: cadence or evaluate_every(steps, batch, trial.data.held_out)
    )
    return replace(complete(replace(draft, steps=steps), data_config, trial.data), minutes=minutes)


def _is_stored(request: ScratchRequest) -> bool:
    return request.resume is not None or request.config is not None


def _read_stored(request: ScratchRequest) -> RunConfig:
    if request.resume is not None:
        return RunFolder(path=Path(request.resume)).read_config()
    path = Path(str(request.config))
    return read_config(read_json(path), f"the settings in {path}")


def _stored(request: ScratchRequest) -> tuple[RunConfig, RunData]:
    """Return the settings of a stored run; one that is resumed may differ only in how the work is done."""
    shaping = ("model", "channels") if request.resume is None else ("model", "channels", "config", "out")
    request.refuse((*LENGTHS, *shaping), "config" if request.resume is None else "resume")
    stored = _read_stored(request)
    config = request.moved(request.applied(stored, steps=request.steps))
    if request.resume is not None and (apart := differences(config, stored)):
        raise InputError(
            f"{request.resume} is a run with other settings: {'; '.join(apart)}. Leave these out to resume it, "
            "`extend` it to train for longer, or start a new run with another `out`."
        )
    data = open_run_data(config.data, seed=config.seed, needs_labels=config.objective.needs_labels)
    check_same(data, config, every_image=request.resume is not None, same_data=request.same_data)
    return replace(config, facts=data.facts), data


def _folder(request: ScratchRequest, config: RunConfig) -> RunFolder:
    """Return the requested folder, or one named for data, model and objective."""
    if path := request.resume or request.out:
        return RunFolder(path=Path(path))
    data = Path(config.data.where).name or Path(config.data.where).resolve().name
    model = config.model.slug if request.model is None else request.model.replace("/", "-")
    parts = [data, model] if config.objective.needs_labels else [data, model, config.objective.kind]
    return RunFolder(path=Path("runs") / "-".join(parts))
