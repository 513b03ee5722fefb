"""Settle the plan of a study: refuse what cannot work before anything runs, and turn minutes into steps."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.notes import Note
from vitrail.base.settings import to_dict
from vitrail.runs.data import RunData
from vitrail.runs.speed import pace
from vitrail.studies.lease import Lease
from vitrail.studies.plan import OVERHEAD, Cell, Pace, StudyPlan, check_same, enter, steps_within, write_plan
from vitrail.studies.study import Study, Variant
from vitrail.verbs.settle import ScratchRequest, settle
from vitrail.verbs.study_cells import SHOTS, Bench, evaluations
from vitrail.verbs.study_speed import check_speed_time

WAIT = 2.0
"""Seconds between two looks at the work of other processes."""
TIMED = 1.0
"""Seconds for which the steps of a variant are timed."""
TRIED_STEPS = 100
MAKE = 0
"""In place of a number of steps: this process is to make the plan."""


def check_sizes(study: Study, variants: Sequence[Variant], places: Sequence[RunData]) -> None:
    """Refuse data that are too few: for a variant's share of the images, or for the few-shot figure."""
    if study.task == "speed":
        return
    for variant in variants:
        data = places[variant.target]
        images = int(len(data.train) * (variant.fraction or 1.0))
        if images < 2 * data.classes:
            raise InputError(
                f"{data.train.where} has {len(data.train)} training images of {data.classes} classes, of which "
                f"{variant.name!r} takes {images}; the study {study.name} needs two of each class there; give a larger "
                "data set."
            )
    last = places[-1].train
    if "fewshot" in study.measures and last.counts.min() < SHOTS:
        raise InputError(
            f"{last.where} has only {last.counts.min()} training images of {last.labels[int(last.counts.argmin())]}, "
            f"but the study {study.name} measures with {SHOTS} of each class; give a larger data set."
        )


def settle_plan(
    bench: Bench, folder: Path, variants: Sequence[Variant], plan: StudyPlan, *, steps: int | None, note: Note
) -> StudyPlan:
    """Read the plan of the folder, or check and time all variants and write it; one process does, others wait.

    Every rank calls it, and all of them time together.
    """
    lease, claims = Lease(folder=folder / "plan"), list[Path]()

    def look() -> int:
        while (stored := enter(folder)) is None:
            if claims:
                return MAKE
            if (claim := lease.take()) is None:
                time.sleep(WAIT)
            else:
                claims.append(claim)  # and look again: another process may have written the plan meanwhile
        ours = {name: value for name, value in to_dict(plan).items() if name != "steps" or steps is not None}
        check_same(ours, stored, folder, same_data=bench.same_data)
        return stored.steps

    count = bench.ranks.follow(look)
    try:
        with lease.kept(claims[0] if claims else None):
            if count == MAKE:
                count = steps or _steps(bench, variants, plan, note)
                if bench.ranks.first:
                    write_plan(folder, replace(plan, steps=count))
                bench.ranks.wait()
    finally:
        for empty in (lease.folder, folder):  # of a study that was refused nothing is left
            with suppress(OSError):
                empty.rmdir()
    return replace(plan, steps=count)


def check_runs(bench: Bench, variants: Sequence[Variant]) -> None:
    """Refuse settings that a run cannot have: every run is settled, and none begun."""
    for variant in variants:
        for request in _stand_ins(bench, variant):
            try:
                settle(request, bench.ranks)
            except VitrailError as error:
                raise type(error)(f"{variant.name!r}: {error}") from None


def _steps(bench: Bench, variants: Sequence[Variant], plan: StudyPlan, note: Note) -> int:
    """Time every variant, and return the steps that fill the minutes."""
    minutes = plan.minutes or 0.0
    if bench.study.task == "speed":
        models = [variant.model for variant in variants if variant.model is not None]
        check_speed_time(models, minutes=minutes, seeds=plan.seeds, device=bench.ranks.device)
        return 1
    began = time.monotonic()
    paces = [_pace(bench, variant) for variant in variants]
    measured = time.monotonic() - began
    steps = bench.ranks.follow(lambda: steps_within(paces, minutes=minutes, seeds=plan.seeds, measured=measured))
    note(f"{len(variants) * plan.seeds} cells of {steps} steps each.")
    return steps


def _pace(bench: Bench, variant: Variant) -> Pace:
    """Time the runs of a variant; two alike are timed once."""
    parts = [pace(settle(request, bench.ranks), for_seconds=TIMED) for request in _stand_ins(bench, variant)]
    shares = bench.study.shares(variant)
    timed = list(zip(shares, (parts[0], parts[-1]), strict=False))
    return Pace(
        step=sum(share * part.step for share, part in timed),
        fixed=sum(evaluations(variant) * part.evaluation + OVERHEAD for _, part in timed),
    )


def _stand_ins(bench: Bench, variant: Variant) -> list[ScratchRequest]:
    """Return requests that stand for the runs of a variant, to check and to time them; of two alike, one."""
    cell = Cell(variant=variant, seed=0, folder=Path("timed"))
    whole = partial(bench.request, cell, steps=TRIED_STEPS, out=cell.folder)
    task, model = bench.study.task, variant.model
    if task == "speed":
        return []
    if task == "enlarge":
        return [whole(side=side) for side in variant.image_sizes]
    if task == "transfer":
        return [whole(number=number) for number in (variant.source, variant.target) if number is not None]
    if task == "pretrain" and model is not None and not model.num_classes:
        settings = {path: value for path, value in variant.settings.items() if not path.startswith("objective.")}
        classifier = replace(variant, model=replace(model, num_classes=bench.facts.classes), settings=settings)
        tuned = bench.request(replace(cell, variant=classifier), steps=TRIED_STEPS, out=cell.folder)
        return [bench.pretraining(cell, steps=TRIED_STEPS, out=cell.folder), tuned]
    return [whole()]
