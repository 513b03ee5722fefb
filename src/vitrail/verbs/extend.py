"""From a request for a longer training to a new run: the state of the old one, its settings, and another length."""

from dataclasses import replace
from pathlib import Path

from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.runs.config import ExtendConfig, RunConfig
from vitrail.runs.data import RunData, absolute, check_same, open_run_data
from vitrail.runs.extend import extension_of
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import CHECKPOINTS, LINES, evaluate_every
from vitrail.runs.speed import steps_for
from vitrail.runs.train import Run
from vitrail.verbs.request import RunRequest


def extended_folder(extend: str | Path) -> Path:
    """Return the default folder of a longer training: beside that of the run."""
    path = Path(extend)
    return path.with_name(f"{path.resolve().name}-extended")


def settle_extension(
    request: RunRequest, extend: str | Path, folder: RunFolder, ranks: Ranks
) -> tuple[RunConfig, RunData]:
    """Return the settings and the data of a run that trains another for longer.

    `steps`, `epochs` or `minutes` is how much longer. Called again for the same folder, it takes the state and the
    length that the new run began with.
    """
    if sum(length is not None for length in (request.steps, request.epochs, request.minutes)) != 1:
        raise ConfigError("`extend` trains for longer: give one of `steps`, `epochs` and `minutes`.")
    request.check_length()
    old = RunFolder(path=Path(absolute(str(extend))))
    stored = old.read_config()
    begun = folder.read_config() if folder.config.is_file() and folder.begun else None
    extends = (begun and begun.extends) or extension_of(old)
    config = request.moved(request.applied(stored))
    _check_state(config, stored)
    data = open_run_data(config.data, seed=config.seed, needs_labels=config.objective.needs_labels)
    check_same(data, config, every_image=request.data is None, same_data=request.same_data)
    config = replace(config, facts=data.facts)
    if request.minutes is None:
        steps = request.steps or max(round((request.epochs or 0) * len(data.train) / config.batch), 1)
    elif begun is not None:
        steps = begun.steps - extends.step
    else:
        trial = Run(config=config, data=data, folder=folder, ranks=ranks)
        steps = steps_for(trial, request.minutes, lambda steps: evaluate_every(steps, config.batch, data.held_out))
    return _lasting(config, extends, steps, data.held_out, request), data


def _lasting(config: RunConfig, extends: ExtendConfig, steps: int, held_out: int, request: RunRequest) -> RunConfig:
    """Give the new run its length, and a cadence that suits it unless one was requested."""
    execution, cadence = config.execution, config.evaluate_every
    if not request.requests("checkpoint_every"):
        execution = replace(execution, checkpoint_every=max(steps // CHECKPOINTS, 1))
    if not request.requests("evaluate_every"):
        cadence = evaluate_every(steps, config.batch, held_out)
    return replace(
        config,
        extends=extends,
        steps=extends.step + steps,
        minutes=request.minutes,
        stages=(),  # they are over
        evaluate_every=cadence,
        log_every=max(steps // LINES, 1),
        execution=execution,
    )


def _check_state(config: RunConfig, stored: RunConfig) -> None:
    """Refuse settings with which the state could not be used."""
    if config.optimizer.name != stored.optimizer.name or (config.averaging is None) != (stored.averaging is None):
        raise ConfigError(
            "a longer training begins with the optimiser and the averages of the run; leave `optimizer` out, and "
            "whether there is `averaging`."
        )
