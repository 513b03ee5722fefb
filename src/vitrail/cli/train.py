"""Train a model on a folder of images, or on any other data that `vitrail data` opens.

Without flags, everything is chosen from the data by a written rule (docs/training.md), printed, and stored. The same
command again goes on where it was stopped, and ends with the very weights of a run that was never stopped. Ctrl-C and
SIGTERM save after the step they meet; the exit code is then 130 or 143. Under torchrun, ranks share each batch.

Example: vitrail train photos/ --minutes 30
"""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from vitrail.base.errors import InputError
from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.cli.report import Positional, Switch, flag, parse_size
from vitrail.cli.stoppable import carry_out
from vitrail.cli.train_flags import RULE, RunFlags, check_unshaped, data_of, execution_of, settings_of
from vitrail.cli.watch import Trained, Watcher, as_json, print_choices, print_result
from vitrail.recipes.names import find_recipe
from vitrail.runs.conduct import conduct
from vitrail.runs.config import RunConfig, differences, read_config, with_settings
from vitrail.runs.data import RunData, check_same, open_run_data
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import Request, complete, evaluate_every
from vitrail.runs.speed import largest_micro_batch, steps_for
from vitrail.runs.train import Run
from vitrail.train.signals import StopSignal


@dataclass(frozen=True, kw_only=True)
class Arguments(RunFlags):
    """Flags of `vitrail train`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "sample, the embedded Fashion-MNIST")] = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    model: Annotated[str | None, flag("MODEL", RULE)] = None
    """A model of `vitrail models`, such as S/16, R50+B/16 or R50x1."""
    channels: Annotated[int | None, flag("INT", "the data's")] = None
    """Channels of the images: 3 makes grey ones coloured, 1 makes coloured ones grey."""
    config: Annotated[str | None, flag("FILE", "none")] = None
    """Run these settings again: the config.json of a run."""
    resume: Annotated[str | None, flag("RUN", "none")] = None
    """Go on with the run in this folder, with its own settings."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-MODEL")] = None
    """The folder of the run."""
    json: Switch = False
    """Write the result as JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Train, and say what came out."""
    show = as_json if arguments.json else print_result
    work = partial(_train, arguments)
    stored = _named(arguments).execution if _is_stored(arguments) else None
    return carry_out(work, show, threads=arguments.threads, device=arguments.device, stored=stored)


def _train(arguments: Arguments, ranks: Ranks, stop: StopSignal) -> Trained:
    config, data = _settled(arguments, ranks)
    folder = RunFolder(path=Path(arguments.resume or arguments.out or _default_out(config, arguments.model)))
    ready = Run(config=config, data=data, folder=folder, ranks=ranks)
    ready.check()
    if ranks.first:
        print_choices(config, data, folder)
    with Watcher(config, quiet=not ranks.first) as watcher:
        return conduct(ready, watcher, stop), folder


def _settled(arguments: Arguments, ranks: Ranks) -> tuple[RunConfig, RunData]:
    """Return the complete settings of the run, and its data."""
    if _is_stored(arguments):
        return _stored(arguments)
    data_config = data_of(arguments, arguments.data or "sample")
    size = None if arguments.image_size is None else parse_size(arguments.image_size)
    recipe = find_recipe(arguments.recipe, size)
    data = open_run_data(data_config, seed=settings_of(arguments).get("seed", 0))
    request = Request(
        recipe=recipe,
        model=arguments.model,
        image_size=size,
        channels=arguments.channels,
        steps=arguments.steps,
        epochs=arguments.epochs,
        settings=settings_of(arguments) | execution_of(arguments),
    )
    config = complete(request, data_config, data)
    folder = RunFolder(path=Path(arguments.out or _default_out(config, arguments.model)))
    trial = Run(config=config, data=data, folder=folder, ranks=ranks)
    if arguments.micro_batch == "auto":
        micro = {"execution.micro_batch": largest_micro_batch(trial)}
        request = replace(request, settings={**request.settings, **micro})
        config = complete(request, data_config, data)
        trial = replace(trial, config=config)
    if arguments.minutes is not None:
        stored = folder.read_config().steps if folder.config.is_file() and folder.begun else None
        given, batch = request.settings.get("evaluate_every"), config.batch
        steps = stored or steps_for(
            trial, arguments.minutes, lambda steps: given or evaluate_every(steps, batch, data.held_out)
        )
        config = replace(complete(replace(request, steps=steps), data_config, data), minutes=arguments.minutes)
    return config, data


def _is_stored(arguments: Arguments) -> bool:
    return arguments.resume is not None or arguments.config is not None


def _named(arguments: Arguments) -> RunConfig:
    """Read the settings that --resume or --config names."""
    if arguments.resume is not None:
        return RunFolder(path=Path(arguments.resume)).read_config()
    return _read_file(Path(str(arguments.config)))


def _stored(arguments: Arguments) -> tuple[RunConfig, RunData]:
    """Return the settings of a stored run; with --resume they may differ only in how the work is done."""
    more = ("model", "channels") if arguments.resume is None else ("model", "channels", "config", "out")
    check_unshaped(arguments, more, "config" if arguments.resume is None else "resume")
    stored, given = _named(arguments), settings_of(arguments)
    if arguments.steps is not None:
        given |= {"steps": arguments.steps, "minutes": None}
    if arguments.data is not None:
        given["data.where"] = arguments.data
    settings = with_settings(to_dict(stored), given | execution_of(arguments))
    config = read_config(settings, "the settings of this run")
    if arguments.resume is not None and (found := differences(config, stored)):
        raise InputError(
            f"{arguments.resume} is a run with other settings: {'; '.join(found)}. Leave these flags out to go on "
            "with it, or give another --out."
        )
    data = open_run_data(config.data, seed=config.seed)
    check_same(data, config, every_image=arguments.resume is not None)
    return replace(config, facts=data.facts), data


def _read_file(path: Path) -> RunConfig:
    try:
        return read_config(json.loads(path.read_text()), f"the settings in {path}")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} holds no settings of a run: {error}.") from None


def _default_out(config: RunConfig, model: str | None) -> str:
    """Name a run for its data and model."""
    data = Path(config.data.where).name or Path(config.data.where).resolve().name
    if model is None:
        model = config.model.slug
    return str(Path("runs") / f"{data}-{model.replace('/', '-')}")
