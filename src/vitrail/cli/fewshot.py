"""Measure how good a model's frozen features are with a few labelled images of each class.

The paper's few-shot classifier (regularised least squares in closed form) and, for comparison, nearest neighbours and a
linear probe are fitted on a few training images and measured on the test split (or val, where there is no test). Each
number of shots is drawn with several seeds; the table has mean and standard deviation. Features are kept on disk by a
digest of model and images, so that asking again is quick. Under torchrun, ranks share the images.

Example: vitrail fewshot b16.safetensors photos/ --shots 1 5 10 25
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from vitrail.base.errors import ConfigError
from vitrail.cli.engine_flags import EngineFlags, engine_keywords
from vitrail.cli.progress import progress
from vitrail.cli.report import Device, Positional, Switch, Weights, flag, parse_size, print_json, print_table
from vitrail.cli.say import say
from vitrail.evaluation.defaults import L2, NEIGHBOURS, C, MethodName


@dataclass(frozen=True, kw_only=True)
class Arguments(EngineFlags):
    """Flags of `vitrail fewshot`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """A file or folder of weights, of any format that `vitrail show` reads, or the name of a published model."""
    data: Annotated[str, Positional, flag("DATA")]
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    shots: Annotated[tuple[str, ...], flag("NUMBER|all [...]", "1 5 10 25")] = ("1", "5", "10", "25")
    """Training images of each class; all takes the whole training split."""
    methods: Annotated[tuple[MethodName, ...], flag("ridge|neighbours|probe [...]", "ridge")] = ("ridge",)
    """Classifiers to fit: ridge is the paper's."""
    seeds: int = 3
    """Draws for each number of shots."""
    l2: Annotated[tuple[float, ...], flag("FLOAT [...]", f"{L2:g}")] = (L2,)
    """Strength of the regularisation of ridge; of several, each has a column."""
    neighbours: int = NEIGHBOURS
    """How many of the nearest training images vote; all where there are fewer."""
    probe_c: Annotated[float, flag("FLOAT", f"{C:g}")] = C
    """The inverse strength of the regularisation of the probe, as C of scikit-learn."""
    preprocessing: Literal["paper", "model"] = "paper"
    """How images become input: the paper's resize and centre crop, or those of the model's file."""
    cache: Annotated[str | None, flag("FOLDER", "~/.cache/vitrail/features")] = None
    """Where features are kept."""
    no_cache: Switch = False
    """Neither store features nor read stored ones."""
    plot: Annotated[str | None, flag("FILE.svg|FILE.png", "none")] = None
    """Draw accuracy against shots into this file."""
    force: Switch = False
    """Allow --plot to replace a file of another kind."""
    val_fraction: Annotated[float, flag("FLOAT", "0.1")] = 0.1
    """Share that is measured on where the data has no split of its own."""
    skip_broken: Annotated[str, flag("NUMBER|PERCENT", "0")] = "0"
    """How many broken images may be skipped, such as 5 or 1%."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""
    batch: int = 64
    """Images that go through the model at once."""
    workers: int = 0
    """Processes that read images; 0 reads in this one."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute features; auto takes a GPU if there is one."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Measure, draw the plot on request, and print."""
    from vitrail.base.ranks import is_first
    from vitrail.verbs.fewshot import fewshot

    size = arguments.image_size
    result = fewshot(
        arguments.model,
        arguments.data,
        shots=parse_shots(arguments.shots),
        methods=arguments.methods,
        seeds=arguments.seeds,
        l2=arguments.l2,
        neighbours=arguments.neighbours,
        probe_c=arguments.probe_c,
        preprocessing=arguments.preprocessing,
        image_size=None if size is None else parse_size(size),
        num_heads=arguments.num_heads,
        architecture=arguments.architecture,
        cache=False if arguments.no_cache else arguments.cache or True,
        plot=arguments.plot,
        force=arguments.force,
        val_fraction=arguments.val_fraction,
        skip_broken=arguments.skip_broken,
        root=arguments.root,
        batch=arguments.batch,
        pickle=arguments.pickle,
        workers=arguments.workers,
        threads=arguments.threads,
        device=arguments.device,
        **engine_keywords(arguments),
        progress=progress,
        note=say,
    )
    if not is_first():
        return
    if arguments.json:
        print_json(result.to_dict())
    else:
        print_table(result.title, result.columns, result.table, notes=[result.unit])


def parse_shots(words: Sequence[str]) -> list[int | Literal["all"]]:
    """Read numbers of images, or `all`."""
    shots: list[int | Literal["all"]] = []
    for word in words:
        if word != "all" and not (word.isascii() and word.isdigit() and len(word) < 10 and int(word)):
            raise ConfigError(f"--shots is given {word!r}, but takes numbers of images from 1 on, or all.")
        shots.append("all" if word == "all" else int(word))
    return shots
