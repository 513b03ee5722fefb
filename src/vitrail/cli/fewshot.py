"""Measure how good a model's frozen features are with a few labelled images of each class.

The paper's few-shot classifier (regularised least squares in closed form) and, for comparison, nearest neighbours and a
linear probe are fitted on a few training images and measured on the test split (or val, where there is no test). Each
number of shots is drawn with several seeds; the table has mean and standard deviation. Features are kept on disk by a
digest of model and images, so that asking again is quick. Under torchrun, ranks share the images.

Example: vitrail fewshot b16.safetensors photos/ --shots 1 5 10 25
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.progress import silent
from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.checkpoint.files import load
from vitrail.cli.computing import computing
from vitrail.cli.model_file import FileFlags, hints, model_name
from vitrail.cli.progress import progress
from vitrail.cli.report import Positional, Switch, flag, print_json, print_table
from vitrail.cli.say import say
from vitrail.data.budget import Budget
from vitrail.data.catalog import open_splits
from vitrail.data.dataset import Dataset
from vitrail.evaluate.extractor import Extractor
from vitrail.evaluate.feature_files import default_folder
from vitrail.evaluate.features import feature_preprocessing
from vitrail.evaluate.fewshot import Method, Score, Shots, check_shots, know_all, know_drawn, measure
from vitrail.evaluate.neighbours import NEIGHBOURS, neighbours
from vitrail.evaluate.probe import C, probe
from vitrail.evaluate.ridge import L2, ridge
from vitrail.report.shots import ShotsLine, check_picture, write_shots
from vitrail.runs.config import Device

MethodName = Literal["ridge", "neighbours", "probe"]


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail fewshot`."""

    model: Annotated[str, Positional, flag("MODEL")]
    """A file or folder of weights, of any format that `vitrail show` reads."""
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
    """Training images that vote, as many as there are at most."""
    probe_c: Annotated[float, flag("FLOAT", f"{C:g}")] = C
    """The inverse strength of the regularisation of the probe, as C of scikit-learn."""
    preprocessing: Literal["paper", "model"] = "paper"
    """How images become input: the paper's resize and centre crop, or what the model's file says."""
    cache: Annotated[str | None, flag("FOLDER", "~/.cache/vitrail/features")] = None
    """Where features are kept."""
    no_cache: Switch = False
    """Keep no features, and read none."""
    plot: Annotated[str | None, flag("FILE.svg|FILE.png", "none")] = None
    """Draw accuracy against shots into this file."""
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
    """Let torch's pickled files be opened, of which only tensors are read."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Measure, print, and draw if asked."""
    shots, methods = parse_shots(arguments.shots), _methods(arguments)
    if arguments.plot is not None:
        check_picture(Path(arguments.plot))
    with computing(arguments.threads, arguments.device) as ranks:
        train, test = _splits(arguments)
        check_shots(train, test, shots, arguments.seeds)
        extractor = _extractor(arguments, ranks)
        for note in dict.fromkeys((*train.notes, *test.notes)):
            extractor.note(note)
        allowed = Budget.parse(arguments.skip_broken)
        budgets = [allowed.left(len(split), split.skipped) for split in (train, test)]
        draws, known = know_drawn(train, shots, arguments.seeds, extractor, skip_broken=budgets[0])
        asked = know_all(test, extractor, skip_broken=budgets[1])
        if not ranks.first:  # what is left is the work of one
            return
        scores = measure(known, draws, asked, len(train.labels), methods, progress=progress)
    if arguments.plot is not None:
        title = f"Few-shot accuracy of {model_name(arguments.model)} on {Path(arguments.data).name or arguments.data}"
        write_shots(_lines(scores, len(train.labels)), Path(arguments.plot), title=title)
    if arguments.json:
        print_json(_told(arguments, extractor, test, len(asked.rows), scores))
        return
    told = f"{len(asked.rows):,} images of {test.split}, {len(test.labels)} classes"
    _print(scores, f"Few-shot accuracy of {arguments.model} on {arguments.data} ({told})", arguments)


def parse_shots(given: Sequence[str]) -> list[Shots]:
    """Read numbers of images, or `all`, each once."""
    found: list[Shots] = []
    for word in given:
        if word != "all" and not (word.isascii() and word.isdigit() and len(word) < 10 and int(word)):
            raise ConfigError(f"--shots is given {word!r}, but takes numbers of images from 1 on, or all.")
        found.append(None if word == "all" else int(word))
    if not found:
        raise ConfigError("--shots is given nothing, but takes numbers of images such as 1 5 10 25, or all.")
    return list(dict.fromkeys(found))


def _methods(arguments: Arguments) -> dict[str, Method]:
    if not arguments.l2 or not all(0 < strength < float("inf") for strength in arguments.l2):
        raise ConfigError(f"--l2 is given {', '.join(map(str, arguments.l2)) or 'nothing'}, but must be above 0.")
    if not 0 < arguments.probe_c < float("inf"):
        raise ConfigError(f"--probe-c is given {arguments.probe_c}, but must be above 0.")
    if arguments.neighbours < 1:
        raise ConfigError(f"--neighbours is given {arguments.neighbours}, but must be at least 1.")
    if not arguments.methods:
        raise ConfigError("--methods is given nothing, but takes ridge, neighbours and probe.")
    known: dict[str, Method] = {
        "ridge": partial(ridge, l2=tuple(dict.fromkeys(arguments.l2))),
        "neighbours": partial(neighbours, most=arguments.neighbours),
        "probe": partial(probe, c=arguments.probe_c),
    }
    return {name: known[name] for name in dict.fromkeys(arguments.methods)}


def _splits(arguments: Arguments) -> tuple[Dataset, Dataset]:
    splits = open_splits(
        arguments.data,
        val_fraction=arguments.val_fraction,
        skip_broken=arguments.skip_broken,
        root=arguments.root,
    )
    train, test = splits.get("train"), splits.get("test") or splits.get("val")
    if train is None or test is None:
        raise InputError(
            f"{arguments.data} has the splits {', '.join(splits)}, but train is needed to draw from, and test or val "
            "to measure on."
        )
    return train, test


def _extractor(arguments: Arguments, ranks: Ranks) -> Extractor:
    model = load(arguments.model, pickle=arguments.pickle, device=ranks.device, **hints(arguments))
    cache = None if arguments.no_cache else Path(arguments.cache) if arguments.cache else default_folder()

    def note(sentence: str) -> None:
        if ranks.first:
            say(sentence)

    return Extractor(
        model=model,
        preprocessing=feature_preprocessing(model, arguments.preprocessing),
        ranks=ranks,
        batch=arguments.batch,
        workers=arguments.workers,
        cache=cache,
        progress=progress if ranks.first else silent,
        note=note,
    )


def _lines(scores: Sequence[Score], classes: int) -> list[ShotsLine]:
    """Gather the scores of each method; all images count as their mean number in a class."""
    return [
        ShotsLine(
            name=method,
            shots=tuple(score.images / classes for score in own),
            accuracies=tuple(score.mean for score in own),
            spreads=tuple(score.spread or 0.0 for score in own),
        )
        for method in dict.fromkeys(score.method for score in scores)
        if (own := sorted((score for score in scores if score.method == method), key=lambda score: score.images))
    ]


def _print(scores: Sequence[Score], title: str, arguments: Arguments) -> None:
    methods = list(dict.fromkeys(score.method for score in scores))
    cells = {(score.shots, score.method): _cell(score) for score in scores}
    rows = [
        (str(shots or "all"), f"{images:,}", *(cells[shots, method] for method in methods))
        for shots, images in dict.fromkeys((score.shots, score.images) for score in scores)
    ]
    drawn = any(score.spread is not None for score in scores)
    several = f"Percent; mean and standard deviation over {arguments.seeds} draws." if drawn else "Percent."
    print_table(title, ("shots", "images", *methods), rows, notes=[several])


def _cell(score: Score) -> str:
    spread = "" if score.spread is None else f" +- {100 * score.spread:.2f}"
    return f"{100 * score.mean:.2f}{spread}"


def _told(
    arguments: Arguments, extractor: Extractor, test: Dataset, images: int, scores: Sequence[Score]
) -> dict[str, Any]:
    return {
        "model": arguments.model,
        "data": arguments.data,
        "split": test.split,
        "images": images,
        "classes": len(test.labels),
        "preprocessing": to_dict(extractor.preprocessing),
        "results": [
            {
                "shots": "all" if score.shots is None else score.shots,
                "method": score.method,
                "training_images": score.images,
                "accuracies": list(score.accuracies),
                "mean": score.mean,
                "std": score.spread,
            }
            for score in scores
        ],
    }
