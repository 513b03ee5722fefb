"""List the recipes: what they train on what, for how long, at what cost, and what the paper reports.

NAME-smoke is the small twin of a recipe: the same kind of model, optimiser, schedule and loss, in a second.

Example: vitrail recipes imagenet1k-B/16
"""

from dataclasses import dataclass
from typing import Annotated, Any

from vitrail.cli.report import Positional, Switch, flag, print_json, print_table
from vitrail.recipes.finetuning import FINETUNING, FinetuningRecipe
from vitrail.recipes.names import SMALL_DATA, SMOKE, find_recipe, recipe_names
from vitrail.recipes.paper import DATASETS
from vitrail.recipes.pretraining import PRETRAINING


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail recipes`."""

    names: Annotated[tuple[str, ...], Positional, flag("[NAME ...]", "all")] = ()
    """Recipes to show."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Print one line for each recipe, and of one alone the command that runs it."""
    for name in arguments.names:
        if name.removesuffix(SMOKE) not in FINETUNING:
            find_recipe(name)
    shown = dict.fromkeys(arguments.names or recipe_names())
    rows = [_describe(name) for name in shown]
    if arguments.json:
        print_json(rows)
        return
    _show(rows)


def _show(rows: list[dict[str, Any]]) -> None:
    """Print a table of pre-training and one of fine-tuning, or of one recipe everything."""
    notes = ["vitrail recipes NAME shows what a recipe does and the command that runs it; --json has everything."]
    if len(rows) == 1:
        notes = [f"{rows[0]['name']}: {rows[0]['about']}."]
    adapting = [row for row in rows if str(row["name"]).removesuffix(SMOKE) in FINETUNING]
    training = [row for row in rows if row not in adapting]
    if training:
        cells = [(row["name"], _cell(row["epochs"]), *_figures(row), _cell(row["paper_result"])) for row in training]
        columns = ("recipe", "epochs", "exaFLOPs", "paper's", "value")
        print_table("Pre-training", columns, cells, notes=[] if adapting else notes)
    if training and adapting:
        print()
    if adapting:
        short = [(row["name"], _figures(row)[0], _cell(row["paper_result"])) for row in adapting]
        print_table("Fine-tuning", ("recipe", "exaFLOPs", "value"), short, notes=notes)
    if len(rows) == 1:
        print(f"Run it with: {rows[0]['command']}")  # in one line, to be copied


def _figures(row: dict[str, Any]) -> tuple[str, str]:
    """Write the cost of a recipe, and what the paper reports of it."""
    ours, published = (_cell(row[name] and f"{row[name]:.4g}") for name in ("exaflops", "paper_exaflops"))
    return ours, published


def _cell(value: object) -> str:
    return str(value or "-")


def _describe(name: str) -> dict[str, Any]:
    if name == SMALL_DATA:
        return {
            "name": name,
            "command": "vitrail train DATA",
            "epochs": None,
            "exaflops": None,
            "paper_exaflops": None,
            "paper_result": None,
            "about": "chosen from the data: what `vitrail train` does without --recipe",
        }
    if name.endswith(SMOKE):
        return _describe_smoke(name)
    if name in FINETUNING:
        return _describe_finetuning(FINETUNING[name])
    recipe = PRETRAINING[name]
    return {
        "name": name,
        "command": f"torchrun --nproc-per-node 8 -m vitrail train DATA --recipe {name}",
        "epochs": recipe.epochs,
        "exaflops": recipe.exaflops,
        "paper_exaflops": recipe.published_exaflops,
        "paper_result": recipe.published,
        "about": f"{recipe.model} on {DATASETS[recipe.row.data].title}, Table 3",
    }


def _describe_finetuning(recipe: FinetuningRecipe) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "command": f"vitrail finetune DATA --from MODEL --recipe {recipe.name}",
        "epochs": None,
        "exaflops": recipe.exaflops,
        "paper_exaflops": None,
        "paper_result": recipe.published,
        "about": recipe.about,
    }


def _describe_smoke(name: str) -> dict[str, Any]:
    base = name.removesuffix(SMOKE)
    verb = "finetune DATA --from MODEL" if base in FINETUNING else "train DATA"
    told = {"name": name, "command": f"vitrail {verb} --recipe {name}", "about": f"the small twin of {base}"}
    return dict.fromkeys(_describe(base)) | told
