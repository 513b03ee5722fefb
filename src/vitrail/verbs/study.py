"""Carry out a study: every cell once, by one process or many, and one page with the answer."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError, InputError, RankError, VitrailError
from vitrail.base.notes import Note, logged, unheard
from vitrail.base.numbers import check_whole
from vitrail.base.ranks import Ranks
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, to_dict
from vitrail.runs.bounds import DECADE
from vitrail.runs.data import RunData, absolute, open_run_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.execution import Device
from vitrail.runs.folder import write_json
from vitrail.runs.request import facts_of
from vitrail.studies.catalogue import find_study
from vitrail.studies.lease import Lease
from vitrail.studies.plan import Cell, StudyPlan, cells_of, enter
from vitrail.studies.study import Study, check_variants
from vitrail.training.endings import DivergedError, StoppedError
from vitrail.training.signals import StopSignal
from vitrail.verbs.frame import training_frame
from vitrail.verbs.study_cells import Bench
from vitrail.verbs.study_files import write_study
from vitrail.verbs.study_plan import WAIT, check_runs, check_sizes, settle_plan
from vitrail.verbs.study_result import CellResult, StudyResult

File = str | Path
MOST_SEEDS = 1000


def study(
    name: File | Study,
    data: File | Sequence[File] = "sample",
    *,
    minutes: float | None = None,
    steps: int | None = None,
    seeds: int = 3,
    settings: Mapping[str, Any] | None = None,
    out: File | None = None,
    same_data: bool = False,
    threads: int | None = None,
    device: Device = "auto",
    note: Note = logged,
) -> StudyResult:
    """Ask a question of the paper again: a grid of runs on your data, within a budget, beside the paper's answer.

        >>> result = vitrail.study("pooling", "sample", steps=2, seeds=1, out="asked")
        >>> len(result.cells), result.spread("mean, rate 0.001").count
        (6, 1)

    `name` is one of `vitrail.list_studies()`, a TOML file, or a `Study`. `minutes` is the time of all cells together;
    each cell gets the same number of steps, as many as fit (docs/studies.md has the rule); `steps` sets them instead.
    `settings` are those of every run, by their path, as {"model.mixer": "window"}; those of a variant count more.
    Called again it resumes; several processes, also on several machines, may work in one folder `out` at the same time.
    Images that have changed since are refused; with `same_data`, their files may have other times.
    A cell that diverges is a result; one that fails otherwise is named, and tried again by the next call.
    """
    with training_frame(threads, device, None) as (ranks, stop):
        return conduct_study(
            name,
            data,
            ranks,
            stop,
            minutes=minutes,
            steps=steps,
            seeds=seeds,
            settings=settings,
            out=out,
            same_data=same_data,
            note=note,
        )


def conduct_study(
    name: File | Study,
    data: File | Sequence[File],
    ranks: Ranks,
    stop: StopSignal,
    *,
    minutes: float | None,
    steps: int | None,
    seeds: int,
    settings: Mapping[str, Any] | None,
    out: File | None,
    same_data: bool,
    note: Note,
) -> StudyResult:
    """Settle a study and carry out whatever is not finished; every rank calls it."""
    chosen, note = find_study(name), note if ranks.first else unheard
    places = tuple(absolute(str(place)) for place in ([data] if isinstance(data, str | Path) else data))
    _check(chosen, places, minutes=minutes, steps=steps, seeds=seeds)
    opened = [open_run_data(DataConfig(where=place), seed=0) for place in places]
    facts = facts_of(opened[0])
    variants = [
        replace(variant, settings={**(settings or {}), **variant.settings})
        for variant in chosen.variants(facts, [Path(place).stem for place in places])
    ]
    check_variants(chosen, variants)
    check_sizes(chosen, variants, opened)
    folder = Path(out or Path("runs") / f"study-{chosen.name}-{Path(places[0]).stem}")
    bench = Bench(study=chosen, data=places, facts=facts, steps=1, same_data=same_data, ranks=ranks, stop=stop)
    if enter(folder) is None:
        check_runs(bench, variants)
    plan = StudyPlan(
        study=chosen.name,
        data=places,
        variants=tuple(variant.name for variant in variants),
        seeds=seeds,
        minutes=minutes,
        settings={variant.name: to_dict(variant) for variant in variants},
        images=tuple(map(_digest, opened)),
        files=tuple(data.facts.files_digest or "" for data in opened),
        steps=steps or 1,
    )
    plan = settle_plan(bench, folder, variants, plan, steps=steps, note=note)
    cells = cells_of(folder, variants, seeds)
    if chosen.task == "speed" and minutes is not None:
        bench = replace(bench, seconds=60 * minutes / len(cells))
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
    if minutes is not None and not 0 < minutes <= DECADE:
        raise ConfigError(f"`minutes` is {minutes}, but must be above 0 and at most {DECADE:,.0f}.")
    least, most = chosen.data_sets
    if not least <= len(places) <= most:
        need = f"at least {least}" if len(places) < least else f"at most {most}"
        raise ConfigError(f"the study {chosen.name} takes {need} of `data`, which names {len(places)}.")


def _digest(data: RunData) -> str:
    """Digest the names and classes of all images, by which a resumed study knows them again."""
    return hashlib.sha256(f"{data.facts.train_digest} {data.facts.held_digest}".encode()).hexdigest()


def _work(bench: Bench, cells: Sequence[Cell], note: Note) -> dict[str, str]:
    """Carry out free cells until none is left; return those that failed, by name."""
    failed: dict[str, str] = {}
    while True:
        claims: list[Path] = []
        number = bench.ranks.follow(partial(_take, cells, failed, claims))
        if number == len(cells):
            return failed
        if number < 0:
            time.sleep(WAIT)
            continue
        cell = cells[number]
        note(f"{cell.name}: {sum(one.file.is_file() for one in cells) + 1} of {len(cells)}.")
        with Lease(folder=cell.folder / "lease").kept(claims[0] if claims else None):
            _carry_out(bench, cell, failed, note)


def _take(cells: Sequence[Cell], failed: dict[str, str], claims: list[Path]) -> int:
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
        claims.append(claim)
        return number
    return -1 if busy else len(cells)


def _carry_out(bench: Bench, cell: Cell, failed: dict[str, str], note: Note) -> None:
    try:
        result = CellResult(variant=cell.variant.name, seed=cell.seed, figures=bench.carry_out(cell))
    except DivergedError as error:
        result = CellResult(variant=cell.variant.name, seed=cell.seed, figures={}, diverged=str(error))
        note(f"{cell.name} diverged at step {error.step}; that is its result.")
    except (StoppedError, RankError):  # which end the study, not the cell
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
