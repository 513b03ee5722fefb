"""Adapt a model to your images, the paper's way: try learning rates on a dev split, then train on all images.

The model may be any file that `vitrail show` reads: it gets a new head of zeros, and its positions are interpolated if
the image size changes. What is not said follows from the data by a written rule (docs/finetuning.md). The same command
again goes on where it was stopped, also in the middle of the sweep.

Example: vitrail finetune photos/ --from vit-s16.safetensors --image-size 384
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.cli.model_file import model_name
from vitrail.cli.report import Positional, Switch, flag, parse_size, print_json, print_table
from vitrail.cli.say import line
from vitrail.cli.stoppable import carry_out
from vitrail.cli.train_flags import RULE, RunFlags, check_unshaped, data_of, execution_of, settings_of
from vitrail.cli.watch import Watcher, print_choices, result_rows
from vitrail.recipes.names import find_adaptation
from vitrail.runs.adapt import HEAD_FACTOR, Adaptation, adapt, quick_rate
from vitrail.runs.config import DataConfig, RunConfig, read_config, with_settings
from vitrail.runs.data import RunData, check_same, open_run_data
from vitrail.runs.finetune import Finetuned, FinetunePlan, Finetuning, enter, read_plan
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import facts_of, fill
from vitrail.runs.series import Row
from vitrail.runs.speed import largest_micro_batch, pace, steps_for
from vitrail.runs.start import Source, open_source
from vitrail.runs.train import Run
from vitrail.train.signals import StopSignal

Tuned = tuple[Finetuned, RunFolder]
"""What came out, and where it lies."""
TRIAL_SECONDS = 2.0
"""How long the speed is measured for the estimate."""


@dataclass(frozen=True, kw_only=True)
class Arguments(RunFlags):
    """Flags of `vitrail finetune`."""

    data: Annotated[str | None, Positional, flag("[DATA]", "none; needed unless --resume is given")] = None
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    source: Annotated[str | None, flag("MODEL", "none", name="from")] = None
    """The model to begin with: a file of Vitrail, Google, big_vision, timm, Hugging Face or torchvision."""
    pickle: Switch = False
    """Let torch's own files (.pth, .bin) be opened, without executing anything in them."""
    num_heads: Annotated[int | None, flag("INT", "what the file tells")] = None
    """Attention heads of MODEL, where its file does not tell."""
    rates: Annotated[tuple[float, ...], flag("FLOAT [FLOAT ...]", RULE)] = ()
    """Learning rates to try on the dev split; --learning-rate takes one, and tries none."""
    quick: Switch = False
    """Take the middle rate, and try none."""
    runs: Annotated[int | None, flag("INT", "1")] = None
    """Final runs, with seeds that follow --seed; mean and deviation are told."""
    dev_fraction: Annotated[float | None, flag("FLOAT", RULE)] = None
    """Share of the training images on which rates are tried, where the data has no val beside its test split."""
    frozen: Switch = False
    """Train the head alone; everything else stays as it is."""
    resume: Annotated[str | None, flag("RUN", "none")] = None
    """Go on with the fine-tuning in this folder, with its own settings."""
    out: Annotated[str | None, flag("RUN", "runs/DATA-from-MODEL")] = None
    """The folder of the run."""
    json: Switch = False
    """Write the result as JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Fine-tune, and say what came out."""
    show = _as_json if arguments.json else _print_result
    work = partial(_finetune, arguments)
    stored = None if arguments.resume is None else read_plan(RunFolder(path=Path(arguments.resume))).base.execution
    return carry_out(work, show, threads=arguments.threads, device=arguments.device, stored=stored)


def _finetune(arguments: Arguments, ranks: Ranks, stop: StopSignal) -> Tuned:
    if arguments.resume is not None:
        folder = RunFolder(path=Path(arguments.resume))
        plan = _resumed(arguments, read_plan(folder))
        data = open_run_data(plan.base.data, seed=plan.base.seed)
        check_same(data, plan.base)
    else:
        plan, data, folder = _planned(arguments, ranks)
    if ranks.first:
        print_choices(plan.base, data, folder)
    fresh = bool(ranks.agree(int(not folder.plan.is_file())))
    if ranks.first:
        enter(folder, plan)
    ranks.wait()
    if fresh:
        _estimate(plan, data, folder, ranks)

    @contextmanager
    def watch(config: RunConfig, words: str) -> Iterator[Watcher]:
        with Watcher(config, quiet=not ranks.first) as watcher:
            watcher.note(words)
            yield watcher

    work = Finetuning(plan=plan, data=data, folder=folder, ranks=ranks)
    return work.carry_out(watch, stop), folder


def _planned(arguments: Arguments, ranks: Ranks) -> tuple[FinetunePlan, RunData, RunFolder]:
    """Make a plan of what was asked, and of the rule or a recipe for the rest."""
    if arguments.data is None or arguments.source is None:
        missing = "DATA" if arguments.data is None else "--from MODEL"
        raise ConfigError(f"{missing} is not given; say `vitrail finetune DATA --from MODEL`, or give --resume RUN.")
    if any(assignment.startswith("schedule.peak=") for assignment in arguments.set):
        raise ConfigError("fine-tuning chooses schedule.peak from its rates; give --rates, or one --learning-rate.")
    seed = settings_of(arguments).get("seed", 0)
    data_config = data_of(arguments, arguments.data)
    split_seed = seed if data_config.split_seed is None else data_config.split_seed
    data_config = replace(data_config, role="transfer", split_seed=split_seed)
    source = open_source(arguments.source, pickle=arguments.pickle, num_heads=arguments.num_heads)
    data = open_run_data(data_config, seed=seed)
    folder = RunFolder(path=Path(arguments.out or _default_out(arguments.data, arguments.source)))
    planned = partial(_plan, arguments, source, data_config, data)
    found: dict[str, Any] = {}
    plan = planned(arguments.steps, found)
    trial = Run(config=plan.base, data=data, folder=folder, ranks=ranks)
    if arguments.micro_batch == "auto":
        found["execution.micro_batch"] = largest_micro_batch(trial)
        plan = planned(arguments.steps, found)
    if arguments.minutes is not None:
        found["minutes"] = arguments.minutes
        trial = replace(trial, config=plan.base)
        stored = read_plan(folder).base.steps if folder.plan.is_file() and folder.begun else None
        plan = planned(stored or steps_for(trial, arguments.minutes / plan.trainings, lambda steps: steps), found)
    Finetuning(plan=plan, data=data, folder=folder, ranks=ranks).check()
    return plan, data, folder


def _plan(
    arguments: Arguments,
    source: Source,
    data_config: DataConfig,
    data: RunData,
    steps: int | None,
    found: dict[str, Any],
) -> FinetunePlan:
    """Make a plan of so many steps, with settings that were found out on this machine."""
    if arguments.frozen and arguments.freeze:
        raise ConfigError("--frozen freezes everything but the head, so --freeze has nothing to add; leave one out.")
    facts = facts_of(data, source.config.channels)
    size = None if arguments.image_size is None else parse_size(arguments.image_size)
    adaptation = find_adaptation(arguments.recipe)(facts)
    rates = _rates(arguments, adaptation)
    draft = adapt(source, facts, adaptation, image_size=size, frozen=arguments.frozen).at_rate(quick_rate(rates))
    dev_fraction = adaptation.dev_fraction if arguments.dev_fraction is None else arguments.dev_fraction
    base = fill(
        draft,
        replace(data_config, dev_fraction=dev_fraction),
        data,
        steps=steps,
        epochs=arguments.epochs,
        changes=settings_of(arguments) | execution_of(arguments) | found,
        evaluations=1,
    )
    if base.patience is not None or base.evaluate_every < base.steps:
        raise ConfigError(
            "fine-tuning learns from every training image and looks at the held-out ones once, at the end; leave "
            "--patience and --evaluate-every out, or use `vitrail train`."
        )
    return FinetunePlan(base=base, rates=rates, runs=1 if arguments.runs is None else arguments.runs)


def _rates(arguments: Arguments, adaptation: Adaptation) -> tuple[float, ...]:
    """Return the learning rates to choose from; one alone is not tried."""
    rates = tuple(arguments.rates) or adaptation.rates
    if arguments.frozen and not arguments.rates:
        rates = tuple(HEAD_FACTOR * rate for rate in rates)
    if arguments.learning_rate is None and not arguments.quick:
        return rates
    if arguments.rates:
        raise ConfigError("--rates are tried on a dev split, which --quick and --learning-rate skip; leave one out.")
    return (arguments.learning_rate or quick_rate(rates),)


def _resumed(arguments: Arguments, plan: FinetunePlan) -> FinetunePlan:
    """Return the stored plan; how the work is done may be said anew, and nothing else."""
    shaping = (
        "data",
        "source",
        "rates",
        "quick",
        "frozen",
        "steps",
        "runs",
        "dev_fraction",
        "pickle",
        "num_heads",
        "out",
    )
    check_unshaped(arguments, shaping, "resume")
    given = settings_of(arguments)
    patient = {"data.skip_broken": given.pop("data.skip_broken")} if "data.skip_broken" in given else {}
    if given:
        raise ConfigError(f"{', '.join(given)} cannot change a stored run; give --resume alone, or begin a new run.")
    settings = with_settings(to_dict(plan.base), execution_of(arguments) | patient)
    return replace(plan, base=read_config(settings, "the settings of this run"))


def _estimate(plan: FinetunePlan, data: RunData, folder: RunFolder, ranks: Ranks) -> None:
    """Say how long it will take, from a few steps that are thrown away."""
    found = pace(Run(config=plan.base, data=data, folder=folder, ranks=ranks), for_seconds=TRIAL_SECONDS)
    total = found.total(plan.base.steps, plan.base.evaluate_every) * plan.trainings
    if ranks.first:
        text = f"{total / 60:.0f} minutes" if total >= 90 else f"{total:.0f} seconds"
        tried = plan.trainings - plan.runs
        parts = f"{tried} rates to try and {plan.runs} to train" if tried else f"{plan.runs} to train"
        line(
            f"time         about {text}: {parts}, {plan.base.steps} steps of {found.step:.2f} s each; "
            "--quick tries no rates, --frozen trains the head alone"
        )


def _as_json(done: Tuned) -> None:
    tuned, folder = done
    print_json({"run": str(folder.path)} | tuned.as_dict())


def _print_result(done: Tuned) -> None:
    tuned, folder = done
    rows = [(row.cell, *_figure(row)) for row in tuned.sweep.rows]
    rows += result_rows(dict(tuned.result), folder)
    if spread := tuned.spread:
        mean = f"{spread['accuracy_mean']:.2%} +- {spread['accuracy_std']:.2%}"
        rows.append((f"{len(spread['accuracies'])} seeds", mean, "mean and standard deviation"))
    print_table("Fine-tuned", ("", "value", "note"), rows)
    print(f"\nNext: vitrail predict {folder.model} IMAGE")


def _figure(row: Row) -> tuple[str, str]:
    if row.diverged is not None:
        return f"diverged at step {row.steps}", "the loss was not finite"
    return f"{row.accuracy:.2%}", f"{row.images} images of {row.split}"


def _default_out(data: str, source: str) -> str:
    name = Path(data).resolve().name if Path(data).exists() else data
    return str(Path("runs") / f"{name}-from-{model_name(source)}")
