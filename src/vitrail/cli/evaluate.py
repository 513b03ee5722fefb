"""Measure a model on data: accuracy with its interval, classes, confusions, calibration.

Classes are matched by name. Data that has only some of the model's classes is scored over those, and the output says
so. Every image is counted exactly once, whatever the batch; under torchrun, ranks share the images. What is measured
and how is written in docs/evaluation.md.

Example: vitrail evaluate runs/photos-S-16/model.safetensors photos/ --html evaluation.html
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.memory import keep_freed_memory
from vitrail.base.ranks import Ranks
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import ZERO_HEAD, assemble, has_zero_head
from vitrail.cli.computing import computing
from vitrail.cli.evaluate_tables import show_evaluation
from vitrail.cli.model_file import FileFlags, open_file
from vitrail.cli.output import output_path
from vitrail.cli.progress import progress
from vitrail.cli.report import Positional, Switch, flag, print_json
from vitrail.cli.say import say
from vitrail.data.dataset import Dataset
from vitrail.data.labels import read_labels
from vitrail.data.preprocessing import Preprocessing, preset
from vitrail.evaluate.class_map import ClassMap, read_class_map
from vitrail.evaluate.evaluation import Evaluation, EvaluationConfig, evaluate
from vitrail.evaluate.predictions import write_predictions
from vitrail.evaluate.real import RealLists, check_outputs, choose_with_real, read_real
from vitrail.evaluate.subset import Choice, choose
from vitrail.report.evaluation_page import write_evaluation
from vitrail.runs.config import Device
from vitrail.runs.evaluation import evaluation_page, open_evaluation_data, told_images

MOST_LISTED = 10
GUESSED = "the file does not say how images become input; they are resized to the model's size and go from -1 to 1."


@dataclass(frozen=True, kw_only=True)
class Arguments(FileFlags):
    """Flags of `vitrail evaluate`."""

    model: Annotated[str, Positional, flag("MODEL")]
    """A file or folder of weights, of any format."""
    data: Annotated[str, Positional, flag("DATA")]
    """A folder of class folders, a CSV, shards, arrays: whatever `vitrail data` opens."""
    split: Annotated[str | None, flag("NAME", "test, else val, else everything")] = None
    """The split to evaluate on."""
    image_size: Annotated[str | None, flag("PIXELS|HxW", "the model's own")] = None
    """Height and width that images are brought to; the model's positions are resized for it."""
    batch: int = 64
    """Images that go through the model at once, on each rank."""
    labels: Annotated[str | None, flag("FILE", "those in the model's file")] = None
    """The model's class names: a name a line, or a JSON list, in the order of its outputs."""
    class_map: Annotated[str | None, flag("FILE", "classes are matched by name")] = None
    """Which classes of the model a class of the data stands for: a JSON object, or a CSV of two columns."""
    all_classes: Switch = False
    """Keep the classes that the data lacks among the answers."""
    real: Annotated[str | None, flag("real.json", "none")] = None
    """Measure by ImageNet-ReaL's labels too, on images named ILSVRC2012_val_*."""
    bootstrap: Annotated[int, flag("INT")] = 1000
    """Resamples behind the intervals."""
    seed: int = 0
    """Decides the resamples, and which images of one pile are `val`."""
    csv: Annotated[str | None, flag("OUT.csv", "none")] = None
    """Write every prediction."""
    html: Annotated[str | None, flag("OUT.html", "none")] = None
    """Write a page with everything: figures, confusions, classes, calibration, mistakes."""
    json: Switch = False
    """Write JSON to stdout."""
    skip_broken: Annotated[str, flag("NUMBER|PERCENT", "0")] = "0"
    """How many broken images may be skipped, such as 5 or 1%."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""
    pickle: Switch = False
    """Let torch's pickled files be opened, of which only tensors are read."""
    workers: int = 0
    """Processes that read images; 0 reads in the main one."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """What is to be evaluated, decided before the long work."""

    contents: Contents
    dataset: Dataset
    choice: Choice
    preprocessing: Preprocessing
    real: RealLists | None
    notes: tuple[str, ...]


def run(arguments: Arguments) -> None:
    """Decide, evaluate, write what was asked for; then print, for a reader who may have left."""
    csv, html = output_path(arguments.csv, ".csv"), output_path(arguments.html, ".html")
    config = EvaluationConfig(
        batch=arguments.batch,
        workers=arguments.workers,
        skip_broken=arguments.skip_broken,
        resamples=arguments.bootstrap,
        seed=arguments.seed,
    )
    with computing(arguments.threads, arguments.device) as ranks:
        task = _task(arguments)
        if ranks.first:
            for note in task.notes:
                say(note)
        made = _evaluate(task, config, ranks)
        if not ranks.first:
            return
        if csv is not None:
            write_predictions(csv, made.dataset, made.answers, real=made.real)
            say(f"every prediction is in {csv}.")
        if html is not None:
            page = evaluation_page(made, task.contents, task.preprocessing, file=arguments.model, notes=task.notes)
            write_evaluation(page, html)
            say(f"the page is {html}; open it in a browser.")
        _report(arguments, task, made)


def _task(arguments: Arguments) -> _Task:
    """Read everything that is small, and refuse what does not fit together."""
    real, class_map = _labels_beside(arguments)
    contents = open_file(arguments.model, arguments, pickle=arguments.pickle)
    outputs = contents.config.num_classes
    if not outputs:
        raise InputError(f"{arguments.model} has no head, so it answers nothing; fine-tune it first.")
    labels = contents.labels if arguments.labels is None else read_labels(Path(arguments.labels), outputs)
    dataset = open_evaluation_data(
        arguments.data,
        split=arguments.split,
        provenance=contents.provenance,
        root=arguments.root,
        skip_broken=arguments.skip_broken,
        seed=arguments.seed,
    )
    if real is not None:
        check_outputs(outputs)
        choice = choose_with_real(dataset, labels, outputs)
    else:
        choice = choose(dataset, labels, outputs, class_map=class_map, all_classes=arguments.all_classes)
    given = contents.preprocessing
    pixels = given or preset("google", image_size=contents.config.image_size, channels=contents.config.channels)
    notes = [*contents.notes, *([ZERO_HEAD] if has_zero_head(contents) else []), *([] if given else [GUESSED])]
    return _Task(
        contents=contents,
        dataset=dataset,
        choice=choice,
        preprocessing=pixels,
        real=real,
        notes=(*notes, *dataset.notes, *choice.notes),
    )


def _labels_beside(arguments: Arguments) -> tuple[RealLists | None, ClassMap | None]:
    """Read the labels of ReaL, or a map of classes."""
    if arguments.real is not None and arguments.class_map is not None:
        raise ConfigError("ReaL's labels are the model's own classes, so --real takes no --class-map; leave one out.")
    real = None if arguments.real is None else read_real(Path(arguments.real))
    return real, None if arguments.class_map is None else read_class_map(Path(arguments.class_map))


def _evaluate(task: _Task, config: EvaluationConfig, ranks: Ranks) -> Evaluation:
    keep_freed_memory()
    model = assemble(task.contents, device=ranks.device).float()
    return evaluate(
        model,
        task.dataset,
        task.choice,
        task.preprocessing,
        config,
        ranks=ranks,
        real=task.real,
        progress=progress,
    )


def _report(arguments: Arguments, task: _Task, made: Evaluation) -> None:
    for name, reason in made.skipped[:MOST_LISTED]:
        say(f"left out: {name}: {reason}")
    if len(made.skipped) > MOST_LISTED:
        say(f"left out: {len(made.skipped) - MOST_LISTED:,} more; --json lists all.")
    if not arguments.json:
        show_evaluation(made, title=f"{arguments.model} on {told_images(made.dataset)}")
        return
    about = {"model": arguments.model, "sha256": task.contents.digest, "data": arguments.data}
    about |= {"split": made.dataset.split, "csv": arguments.csv, "html": arguments.html}
    print_json(about | made.report() | {"notes": list(task.notes)})
