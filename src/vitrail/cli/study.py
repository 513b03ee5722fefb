"""Ask a question of the paper again: a grid of runs on your data within a budget, beside the paper's answer.

NAME is one of `vitrail studies`, or a TOML file of your own. Every cell gets the same number of steps, as many as make
all of them fill --minutes. The same command resumes; it may run several times at once, also on several machines, with
one folder --out: each takes free cells. The folder gets a page, the figure as PNG and SVG, a CSV of all cells and a
JSON. See docs/studies.md.

Example: vitrail study positions --data photos/ --minutes 60
Example: vitrail study pooling --data photos/ --minutes 60 --set model.mixer=linear
Example: vitrail study mine.toml --data photos/ --minutes 20 --seeds 5
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from vitrail.cli.report import Device, Positional, Switch, flag, print_json
from vitrail.cli.say import say
from vitrail.cli.tables import print_tables

if TYPE_CHECKING:
    from vitrail.verbs.study_result import StudyResult


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail study`."""

    name: Annotated[str, Positional, flag("NAME")]
    """A study of `vitrail studies`, or a TOML file."""
    data: Annotated[tuple[str, ...], flag("DATA [DATA ...]", "sample, the embedded Fashion-MNIST")] = ("sample",)
    """What `vitrail data` opens; `transfer` takes several, `data-size` a second one to measure on."""
    minutes: Annotated[float | None, flag("MINUTES", "none")] = None
    """The time of all runs together."""
    steps: Annotated[int | None, flag("INT", "as many as fit into --minutes")] = None
    """Updates of each cell, in place of --minutes."""
    seeds: int = 3
    """Runs of each variant, each with another seed."""
    set: Annotated[tuple[str, ...], flag("PATH=VALUE [...]", "none")] = ()
    """Settings of every run by their path in config.json, such as model.mixer=window; those of a variant count more."""
    out: Annotated[str | None, flag("FOLDER", "runs/study-NAME-DATA")] = None
    """The folder of the study."""
    same_data: Switch = False
    """Resume although the files of the data have other times: their images are the same."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""
    json: Switch = False
    """Write the result as JSON to stdout."""


def run(arguments: Arguments) -> int:
    """Carry out the study, and print its tables."""
    from vitrail.cli.stoppable import carry_out
    from vitrail.cli.train_flags import read_settings
    from vitrail.verbs.study import conduct_study

    failures: list[str] = []

    def show(result: "StudyResult") -> None:
        failures.extend(result.failed)
        if arguments.json:
            print_json(result.to_dict())
        else:
            print_tables(result.tables(), arguments, notes=[f"page: {result.page}"])

    work = partial(
        conduct_study,
        arguments.name,
        arguments.data,
        minutes=arguments.minutes,
        steps=arguments.steps,
        seeds=arguments.seeds,
        settings=read_settings(arguments.set),
        out=arguments.out,
        same_data=arguments.same_data,
        note=say,
    )
    code = carry_out(work, show, threads=arguments.threads, device=arguments.device)
    return code or (1 if failures else 0)
