"""From a request for fine-tuning to a complete plan: model, data, recipe, rates, length, or a stored plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from vitrail.base.errors import ConfigError
from vitrail.base.printable import line
from vitrail.base.ranks import Ranks
from vitrail.published.bundled import BACKBONE
from vitrail.published.find import model_name
from vitrail.recipes.names import find_adaptation
from vitrail.runs.adapt import HEAD_FACTOR, Adaptation, adapt, quick_rate
from vitrail.runs.data import RunData, check_same, open_run_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.execution import Execution
from vitrail.runs.finetune import Estimate, Finetuning
from vitrail.runs.finetune_plan import FinetunePlan, read_plan
from vitrail.runs.folder import SERIES_LOCK, RunFolder
from vitrail.runs.request import facts_of, fill
from vitrail.runs.speed import largest_micro_batch, steps_for
from vitrail.runs.start import Source, open_source
from vitrail.training.signals import StopSignal
from vitrail.verbs.frame import set_aside, training_frame
from vitrail.verbs.keywords import FinetuneKeywords
from vitrail.verbs.request import LENGTHS, ClassifierRequest, make_request
from vitrail.verbs.trained import FinetunedRun
from vitrail.verbs.watch import Words, print_choices, watched

FROM_BACKBONE = (
    "beginning with the backbone of the package, a small model of 80 kinds of photos (docs/backbone.md); `start` takes "
    "another."
)
NEVER = 10**9
"""Steps between evaluations that no run reaches: the number of steps of a run with minutes changes."""
SHAPING = (
    "data",
    "start",
    "rates",
    "quick",
    "frozen",
    "steps",
    "runs",
    "dev_fraction",
    "pickle",
    "num_heads",
    "architecture",
    "out",
)


@dataclass(frozen=True, kw_only=True)
class FinetuneRequest(ClassifierRequest):
    """The keywords of `vitrail.finetune`."""

    start: str | Path | None = None
    """The model to begin with: a file of Vitrail, Google, big_vision, timm, Hugging Face or torchvision; None takes the
    backbone of the package."""
    pickle: bool = False
    """Allow torch's own files, without executing anything in them."""
    num_heads: int | None = None
    architecture: str | None = None
    """Attention heads of the model, where its file does not state them."""
    rates: Sequence[float] = ()
    """Learning rates to try on the dev split; `learning_rate` takes one, and tries none."""
    quick: bool = False
    """Take the middle rate, and try none."""
    runs: int | None = None
    """Final runs, each with another seed."""
    dev_fraction: float | None = None
    """Share of the training images on which rates are tried, where the data has no val beside its test split."""
    frozen: bool = False
    """Train the head alone."""


def finetune(
    data: str | Path | None = None,
    *,
    start: str | Path | None = None,
    quiet: bool = False,
    **keywords: Unpack[FinetuneKeywords],
) -> FinetunedRun:
    """Adapt a model to your images; several learning rates are tried on a dev split before all images are used.

        >>> model = vitrail.create("Ti/14", num_classes=10, image_size=28, channels=1, depth=1, seed=0)
        >>> vitrail.save(model, "start.safetensors")
        PosixPath('start.safetensors')
        >>> best = vitrail.finetune("sample", start="start.safetensors", steps=2, batch=8, fraction=0.02,
        ...                         rates=[0.01, 0.03], out="tuned", quiet=True)
        >>> best.rate in (0.01, 0.03), len(best.sweep.rows), best.model.config.num_classes
        (True, 2, 10)

    `start` is a model file of any format that `vitrail.load` reads; without it, the backbone in the package. The other
    keywords are the flags of `vitrail finetune`: image_size=384, rates, quick, frozen, runs=3, recipe="finetune-pets",
    minutes, out, resume, ... What is not given follows from the data and the size of the model by a rule. `quick` takes
    the middle rate; `quiet` shows nothing meanwhile.
    """
    request = make_request(FinetuneRequest, data, {"start": start, **keywords})
    with training_frame(request.threads, request.device, stored_execution(request)) as (ranks, stop):
        return conduct_finetuning(request, ranks, stop, quiet=quiet)


def conduct_finetuning(
    request: FinetuneRequest, ranks: Ranks, stop: StopSignal, *, quiet: bool = False, words: Words = str
) -> FinetunedRun:
    """Settle a request and carry out its plan; every rank calls it."""
    work, quiet = settle_finetuning(request, ranks), quiet or not ranks.first
    if not quiet and request.start is None and request.resume is None:
        line(f"vitrail: {words(FROM_BACKBONE)}")
    if not quiet:
        print_choices(work.run(), words)
    if request.restart:
        set_aside(work.folder, ranks, lambda sentence: None if quiet else line(f"vitrail: {sentence}"), SERIES_LOCK)
    if work.enter():
        estimate = work.estimate()
        if not quiet:
            _print_time(work.plan, estimate, words)
    tuned = work.carry_out(partial(watched, quiet=quiet, words=words), stop)
    return FinetunedRun(folder=work.folder.path, result=tuned.result, tuned=tuned)


def _print_time(plan: FinetunePlan, estimate: Estimate, words: Words) -> None:
    minutes = f"{estimate.seconds / 60:.0f} minutes" if estimate.seconds >= 90 else f"{estimate.seconds:.0f} seconds"
    tried = plan.trainings - plan.runs
    parts = f"{tried} rates to try and {plan.runs} to train" if tried else f"{plan.runs} to train"
    advice = words("`quick` tries no rates, `frozen` trains the head alone")
    line(f"time         about {minutes}: {parts}, {plan.base.steps} steps of {estimate.step:.2f} s each; {advice}")


def settle_finetuning(request: FinetuneRequest, ranks: Ranks) -> Finetuning:
    """Decide everything that was not requested, and return the plan; nothing is trained or written yet.

    Every rank calls it. With `minutes`, or an automatic micro-batch, some steps are tried out and thrown away.
    """
    return _new(request, ranks) if request.resume is None else _resumed(request, ranks)


def stored_execution(request: FinetuneRequest) -> Execution | None:
    """Return how the work of a stored plan was done, before ranks and threads are settled; None for a new one."""
    return None if request.resume is None else read_plan(RunFolder(path=Path(request.resume))).base.execution


def _new(request: FinetuneRequest, ranks: Ranks) -> Finetuning:
    if request.data is None:
        raise ConfigError("`data` is missing; fine-tuning needs `data`, or a run to `resume`.")
    if "schedule.peak" in request.settings:
        raise ConfigError("fine-tuning chooses schedule.peak from its rates; give `rates`, or one `learning_rate`.")
    seed, data_config = request.first_seed, request.new_data()
    split_seed = seed if data_config.split_seed is None else data_config.split_seed
    data_config = replace(data_config, role="transfer", split_seed=split_seed)
    start = BACKBONE if request.start is None else str(request.start)
    source = open_source(start, pickle=request.pickle, num_heads=request.num_heads, architecture=request.architecture)
    data = open_run_data(data_config, seed=seed)
    folder = RunFolder(path=Path(request.out or _default_out(str(request.data), start)))
    if folder.plan.is_file() and folder.begun and not request.restart:
        check_same(data, read_plan(folder).base, same_data=request.same_data)
    plan = partial(_plan, source, data_config, data)
    work = Finetuning(plan=plan(request), data=data, folder=folder, ranks=ranks)
    if request.micro_batch == "auto":
        request = replace(request, micro_batch=largest_micro_batch(work.run()))
        work = replace(work, plan=plan(request))
    if request.minutes is not None:
        resumes = folder.plan.is_file() and folder.begun and not request.restart
        stored = read_plan(folder).base.steps if resumes else None
        steps = stored or steps_for(work.run(), request.minutes / work.plan.trainings, lambda steps: steps)
        work = replace(work, plan=plan(replace(request, steps=steps)))
    work.check()
    return work


def _plan(source: Source, data_config: DataConfig, data: RunData, request: FinetuneRequest) -> FinetunePlan:
    """Make a plan from the request, and from the rule or a recipe for the rest."""
    if request.frozen and request.freeze:
        raise ConfigError("`frozen` freezes everything but the head, so `freeze` has nothing to add; leave one out.")
    facts = facts_of(data, source.config.channels)
    adaptation = find_adaptation(request.recipe)(facts, source)
    rates = _rates(request, adaptation)
    draft = adapt(source, facts, adaptation, image_size=request.size, frozen=request.frozen)
    dev_fraction = adaptation.dev_fraction if request.dev_fraction is None else request.dev_fraction
    if not 0 < dev_fraction < 1:
        raise ConfigError(f"`dev_fraction` is {dev_fraction}, but must be between 0 and 1, such as 0.1.")
    base = fill(
        draft.at_rate(quick_rate(rates)),
        replace(data_config, dev_fraction=dev_fraction),
        data,
        request,
        steps=request.steps,
        epochs=request.epochs,
        evaluations=1,
    )
    if base.patience is not None or base.evaluate_every < base.steps:
        raise ConfigError(
            "fine-tuning learns from every training image and evaluates once, at the end; leave `patience` and "
            "`evaluate_every` out, or train instead."
        )
    plan = FinetunePlan(base=base, rates=rates, runs=1 if request.runs is None else request.runs)
    if request.minutes is None:
        return plan
    timed = replace(base, minutes=request.minutes / plan.trainings, evaluate_every=NEVER)  # but at the end
    return replace(plan, base=timed)


def _rates(request: FinetuneRequest, adaptation: Adaptation) -> tuple[float, ...]:
    """Return the learning rates to choose from; one alone is not tried."""
    rates = tuple(request.rates) or adaptation.rates
    if request.frozen and not request.rates:
        rates = tuple(HEAD_FACTOR * rate for rate in rates)
    if request.learning_rate is None and not request.quick:
        return rates
    if request.rates:
        raise ConfigError("`rates` are tried on a dev split, which `quick` and `learning_rate` skip; leave one out.")
    return (request.learning_rate or quick_rate(rates),)


def _resumed(request: FinetuneRequest, ranks: Ranks) -> Finetuning:
    """Return the stored plan; how the work is done may change, and nothing else."""
    request.refuse((*LENGTHS, *SHAPING), "resume")
    folder = RunFolder(path=Path(str(request.resume)))
    plan = read_plan(folder)
    if paths := [f"`{path}`" for path in request.deciding if path != "data.skip_broken"]:
        raise ConfigError(f"{', '.join(paths)} cannot change a stored run; give `resume` alone, or start a new run.")
    plan = replace(plan, base=request.applied(plan.base))
    data = open_run_data(plan.base.data, seed=plan.base.seed)
    check_same(data, plan.base, same_data=request.same_data)
    plan = replace(plan, base=replace(plan.base, facts=data.facts))
    return Finetuning(plan=plan, data=data, folder=folder, ranks=ranks)


def _default_out(data: str, start: str) -> Path:
    name = Path(data).resolve().name if Path(data).exists() else data
    return Path("runs") / f"{name}-from-{model_name(start)}"
