"""Carry out a study: every cell once, by one process or many, and one page with the answer."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError, InputError, VitrailError
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import check_whole
from vitrail.base.ranks import Ranks
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, to_dict
from vitrail.runs.data import RunData, absolute, open_run_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.draft import Facts
from vitrail.runs.execution import Device
from vitrail.runs.folder import write_json
from vitrail.runs.request import facts_of
from vitrail.runs.speed import pace
from vitrail.studies.catalogue import find_study
from vitrail.studies.lease import Lease
from vitrail.studies.plan import Cell, Pace, StudyPlan, cells_of, check_same, enter, steps_within, write_plan
from vitrail.studies.study import Study, Variant, check_variants
from vitrail.training.endings import DivergedError, StoppedError
from vitrail.training.signals import StopSignal
from vitrail.verbs.frame import training_frame
from vitrail.verbs.settle import settle
from vitrail.verbs.study_cells import Bench
from vitrail.verbs.study_files import write_study
from vitrail.verbs.study_result import CellResult, StudyResult

File = str | Path
MOST_SEEDS = 1000
WAIT = 2.0
"""Seconds between two looks at the cells of other processes."""
TIMED = 1.0
"""Seconds for which the steps of a variant are timed."""
TRIED_STEPS = 100


def study(
    name: File | Study,
    data: File | Sequence[File] = "sample",
    *,
    minutes: float | None = None,
    steps: int | None = None,
    seeds: int = 3,
    out: File | None = None,
    threads: int | None = None,
    device: Device = "auto",
    note: Note = logged,
) -> StudyResult:
    """Ask a question of the paper again: a grid of runs on your data, within a budget, beside the paper's answer.

        >>> result = vitrail.study("pooling", "sample", steps=2, seeds=1, out="asked")
        >>> len(result.cells), result.spread("mean, rate 0.001").count
        (6, 1)

    `name` is one of `vitrail.list_studies()`, a TOML file, or a `Study`. `minutes` is the time of all cells together;
    each run gets the same number of steps, as many as fit (docs/studies.md has the rule); `steps` sets them instead.
    Called again it resumes; several processes, also on several machines, may work in one folder `out` at the same time.
    A cell that diverges is a result; one that fails otherwise is named, and tried again by the next call.
    """
    with training_frame(threads, device, None) as (ranks, stop):
        return conduct_study(name, data, ranks, stop, minutes=minutes, steps=steps, seeds=seeds, out=out, note=note)


def conduct_study(
    name: File | Study,
    data: File | Sequence[File],
    ranks: Ranks,
    stop: StopSignal,
    *,
    minutes: float | None,
    steps: int | None,
    seeds: int,
    out: File | None,
    note: Note,
) -> StudyResult:
    """Settle a study and carry out whatever is not finished; every rank calls it."""
    chosen = find_study(name)
    places = tuple(absolute(str(place)) for place in ([data] if isinstance(data, str | Path) else data))
    _check(chosen, places, minutes=minutes, steps=steps, seeds=seeds)
    opened = {place: open_run_data(DataConfig(where=place), seed=0) for place in places}
    facts = facts_of(opened[places[0]])
    variants = list(chosen.variants(facts, [Path(place).stem for place in places]))
    check_variants(chosen, variants)
    _check_sizes(chosen, facts, variants, places[0])
    folder = Path(out or Path("runs") / f"study-{chosen.name}-{Path(places[0]).stem}")
    bench = Bench(
        study=chosen, data=places, facts=facts, steps=steps or TRIED_STEPS, seconds=1.0, ranks=ranks, stop=stop
    )
    asked = {
        "study": chosen.name,
        "data": list(places),
        "variants": [one.name for one in variants],
        "seeds": seeds,
        "minutes": minutes,
        "settings": {one.name: to_dict(one) for one in variants},
        "images": [_digest(opened[place]) for place in places],
    }
    plan = _plan(bench, folder, variants, asked, steps=steps, note=note)
    if chosen.task == "speed":
        bench = replace(bench, seconds=60 * (minutes or 0.05) / (len(variants) * seeds))
    cells = cells_of(folder, variants, seeds)
    failed = _work(replace(bench, steps=plan.steps), cells, note)
    result = StudyResult(
        study=chosen,
        variants=variants,
        cells=tuple(_read(cell) for cell in cells if cell.file.is_file()),
        failed=failed,
        folder=folder,
        steps=plan.steps,
    )
    if ranks.first:
        write_study(result)
    ranks.wait()
    return result


def _check(chosen: Study, places: Sequence[str], *, minutes: float | None, steps: int | None, seeds: int) -> None:
    check_whole("seeds", seeds, most=MOST_SEEDS)
    if steps is not None:
        check_whole("steps", steps)
    if (minutes is None) == (steps is None):
        raise ConfigError("a study has one length: give `minutes` for all of it, or `steps` for each run.")
    if minutes is not None and not 0 < minutes < 10**7:
        raise ConfigError(f"`minutes` is {minutes}, but must be above 0.")
    if len(places) < chosen.data_sets or (len(places) > 1 and chosen.data_sets == 1):
        need = "one data set" if chosen.data_sets == 1 else f"at least {chosen.data_sets} data sets"
        raise ConfigError(f"the study {chosen.name} takes {need}, but `data` names {len(places)}.")


def _digest(data: RunData) -> str:
    """Digest the names and classes of all images, by which a resumed study knows them again."""
    return hashlib.sha256(f"{data.facts.train_digest} {data.facts.held_digest}".encode()).hexdigest()


def _check_sizes(chosen: Study, facts: Facts, variants: Sequence[Variant], place: str) -> None:
    """Refuse data of which a variant's share has fewer images than classes."""
    for variant in variants:
        images = int(facts.images * (variant.fraction or 1.0))
        if chosen.task != "speed" and images < 2 * facts.classes:
            raise InputError(
                f"{place} has {facts.images} training images of {facts.classes} classes, of which {variant.name!r} "
                f"takes {images}; the study {chosen.name} needs two of each class there; give a larger data set."
            )


def _plan(
    bench: Bench, folder: Path, variants: Sequence[Variant], asked: dict[str, Any], *, steps: int | None, note: Note
) -> StudyPlan:
    """Read the plan of the folder, or time the variants and write it; one process does, the others wait for it."""

    def settle_plan() -> int:
        while True:
            stored = enter(folder)
            if stored is not None:
                check_same(asked | ({} if steps is None else {"steps": steps}), stored, folder)
                return stored.steps
            lease = Lease(folder=folder / "plan")
            claim = lease.take()
            if claim is None:
                time.sleep(WAIT)
                continue
            with lease.kept(claim):
                count = steps or _steps(bench, variants, asked, note)
                write_plan(folder, from_dict(StudyPlan, {**asked, "steps": count}))
                return count

    return from_dict(StudyPlan, {**asked, "steps": bench.ranks.follow(settle_plan)})


def _steps(bench: Bench, variants: Sequence[Variant], asked: dict[str, Any], note: Note) -> int:
    """Time every variant, and return the steps that fill the minutes."""
    if bench.study.task == "speed":
        return 1
    began, paces = time.monotonic(), []
    for variant in variants:
        cell = Cell(variant=replace(variant, image_size=None), seed=0, folder=Path("timed"))
        number = variant.target if bench.study.task == "transfer" else 0
        if variant.model is not None and not variant.model.num_classes:  # without labels, a pass costs the same
            model = replace(variant.model, num_classes=bench.facts.classes)
            cell = replace(cell, variant=Variant(name=variant.name, model=model))
        run = settle(bench.request(cell, steps=TRIED_STEPS, out=cell.folder / "run", number=number), bench.ranks)
        parts = pace(run, for_seconds=TIMED)
        paces.append(Pace(step=parts.step, evaluation=parts.evaluation))
    measured = time.monotonic() - began
    steps = steps_within(bench.study, paces, minutes=asked["minutes"], seeds=asked["seeds"], measured=measured)
    note(f"{len(variants) * asked['seeds']} cells of {steps} steps each.")
    return steps


def _work(bench: Bench, cells: Sequence[Cell], note: Note) -> dict[str, str]:
    """Carry out free cells until none is left; return those that failed, by name."""
    failed: dict[str, str] = {}
    while True:
        taken: list[tuple[Lease, Path]] = []

        def take(taken: list[tuple[Lease, Path]] = taken) -> int:
            return _take(cells, failed, taken)

        number = bench.ranks.follow(take)
        if number == len(cells):
            return failed
        if number < 0:
            time.sleep(WAIT)
            continue
        cell = cells[number]
        note(f"{cell.name}: {sum(one.file.is_file() for one in cells) + 1} of {len(cells)}.")
        if taken:
            lease, claim = taken[0]
            with lease.kept(claim):
                _carry_out(bench, cell, failed, note)
        else:
            _carry_out(bench, cell, failed, note)


def _take(cells: Sequence[Cell], failed: dict[str, str], taken: list[tuple[Lease, Path]]) -> int:
    """Claim a free cell and return its number; -1 while others work, and the number of cells when all is done."""
    busy = False
    for number, cell in enumerate(cells):
        if cell.file.is_file() or cell.name in failed:
            continue
        lease = Lease(folder=cell.folder / "lease")
        claim = lease.take()
        if claim is None:
            busy = True
            continue
        if cell.file.is_file():  # its owner finished it between the two looks
            with lease.kept(claim):
                continue
        taken.append((lease, claim))
        return number
    return -1 if busy else len(cells)


def _carry_out(bench: Bench, cell: Cell, failed: dict[str, str], note: Note) -> None:
    try:
        result = CellResult(variant=cell.variant.name, seed=cell.seed, figures=bench.carry_out(cell))
    except DivergedError as error:
        result = CellResult(variant=cell.variant.name, seed=cell.seed, figures={}, diverged=str(error))
        note(f"{cell.name} diverged at step {error.step}; that is its result.")
    except StoppedError:
        raise
    except VitrailError as error:
        failed[cell.name] = str(error)
        note(f"{cell.name} failed: {error}")
        return
    if bench.ranks.first:
        write_json(cell.file, to_dict(result))
    bench.ranks.wait()


def _read(cell: Cell) -> CellResult:
    result = from_dict(CellResult, read_json(cell.file), where=f"the figures in {cell.file}")
    if (result.variant, result.seed) != (cell.variant.name, cell.seed):
        raise InputError(
            f"{cell.file} has the figures of {result.variant!r} with seed {result.seed}, but belongs to {cell.name}; "
            "remove it, and the cell is carried out again."
        )
    return result
