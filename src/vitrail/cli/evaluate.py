"""Measure a model on data: accuracy with its interval, classes, confusions, calibration.

Classes are matched by name. Data that has only some of the model's classes is scored over those, and the output says
so. Every image is counted exactly once, whatever the batch; under torchrun, ranks share the images. What is measured
and how is written in docs/evaluation.md.

Example: vitrail evaluate runs/photos-S-16/model.safetensors photos/ --html evaluation.html
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from vitrail.cli.engine_flags import EngineFlags, engine_keywords
from vitrail.cli.names import in_flags
from vitrail.cli.progress import progress
from vitrail.cli.report import Device, Positional, Switch, Weights, flag, parse_size, print_json
from vitrail.cli.say import say

if TYPE_CHECKING:
    from vitrail.evaluation.evaluation import Evaluation

MOST_LISTED = 10


@dataclass(frozen=True, kw_only=True)
class Arguments(EngineFlags):
    """Flags of `vitrail evaluate`."""

    model: Annotated[str, Positional, Weights, flag("MODEL")]
    """A file or folder of weights, of any format, or the name of a published model."""
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
    text_embeddings: Annotated[str | None, flag("FILE.npz", "none")] = None
    """For CLIP models with their projection: the classes as embeddings and names of texts, made with the text tower."""
    class_map: Annotated[str | None, flag("FILE", "classes are matched by name")] = None
    """The classes of the model for a class of the data: a JSON object, or a CSV of two columns."""
    all_classes: Switch = False
    """Keep the classes that the data lacks among the answers."""
    real: Annotated[str | None, flag("real.json", "none")] = None
    """Measure by ImageNet-ReaL's labels too, on images named ILSVRC2012_val_*."""
    bootstrap: Annotated[int, flag("INT")] = 1000
    """Resamples behind the intervals."""
    seed: int = 0
    """Decides the resamples, and which images are `val` where the data has no splits."""
    csv: Annotated[str | None, flag("OUT.csv", "none")] = None
    """Write every prediction."""
    html: Annotated[str | None, flag("OUT.html", "none")] = None
    """Write a page with everything: figures, confusions, classes, calibration, mistakes."""
    force: Switch = False
    """Allow --csv and --html to replace files of another kind."""
    json: Switch = False
    """Write JSON to stdout."""
    skip_broken: Annotated[str, flag("NUMBER|PERCENT", "0")] = "0"
    """How many broken images may be skipped, such as 5 or 1%."""
    root: Annotated[str | None, flag("FOLDER", "the manifest's own")] = None
    """Where the paths of a CSV or JSON-lines file start from."""
    pickle: Switch = False
    """Allow torch's pickled files, of which only tensors are read."""
    workers: int = 0
    """Processes that read images; 0 reads in the main one."""
    threads: Annotated[int | None, flag("INT", "torch's own choice")] = None
    """Threads for computing on the CPU."""
    device: Device = "auto"
    """Where to compute; auto takes a GPU if there is one."""


def run(arguments: Arguments) -> None:
    """Evaluate, write the requested files, then print: the reader of stdout may have left."""
    from vitrail.base.ranks import is_first
    from vitrail.verbs.evaluate import evaluate

    size = arguments.image_size
    score = evaluate(
        arguments.model,
        arguments.data,
        split=arguments.split,
        labels=arguments.labels,
        text_embeddings=arguments.text_embeddings,
        class_map=arguments.class_map,
        all_classes=arguments.all_classes,
        real=arguments.real,
        image_size=None if size is None else parse_size(size),
        num_heads=arguments.num_heads,
        architecture=arguments.architecture,
        batch=arguments.batch,
        resamples=arguments.bootstrap,
        seed=arguments.seed,
        skip_broken=arguments.skip_broken,
        root=arguments.root,
        csv=arguments.csv,
        html=arguments.html,
        force=arguments.force,
        pickle=arguments.pickle,
        workers=arguments.workers,
        threads=arguments.threads,
        device=arguments.device,
        **engine_keywords(arguments),
        progress=progress,
        note=lambda sentence: say(sentence),
    )
    if is_first():
        _report(score, json=arguments.json)


def _report(score: "Evaluation", *, json: bool) -> None:
    if "csv" in score.files:
        say(f"every prediction is in {score.files['csv']}.")
    if "html" in score.files:
        say(f"the page is {score.files['html']}; open it in a browser.")
    for name, reason in score.skipped[:MOST_LISTED]:
        say(f"left out: {name}: {reason}")
    if len(score.skipped) > MOST_LISTED:
        say(f"left out: {len(score.skipped) - MOST_LISTED:,} more; --json lists all.")
    if json:
        print_json(score.to_dict() | {"notes": [in_flags(sentence) for sentence in score.notes]})
    else:
        from vitrail.cli.evaluate_tables import show_evaluation

        show_evaluation(score)
