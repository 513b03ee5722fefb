"""List the recipes: what they train on what, for how long, at what cost, and what the paper reports.

NAME-smoke is the small twin of a recipe: the same kind of model, optimiser, schedule and loss, in a second.

Example: vitrail recipes imagenet1k-B/16
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.cli.report import Positional, Switch, flag, print_json
from vitrail.cli.say import show
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail recipes`."""

    names: Annotated[tuple[str, ...], Positional, flag("[NAME ...]", "all")] = ()
    """Recipes to show, or patterns such as 'imagenet1k-*'."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Print one line for each recipe, and of one alone the command that runs it."""
    recipes = vitrail.list_recipes(arguments.names or "*")
    if arguments.json:
        print_json([recipe.to_dict() for recipe in recipes])
        return
    if len(recipes) > 1:
        notes = ["vitrail recipes NAME shows what a recipe does and the command that runs it; --json has everything."]
        print_tables(recipes.tables(), arguments, notes=notes)
        return
    print_tables(recipes.tables(), arguments, notes=[f"{recipes[0].name}: {recipes[0].about}."])
    show(f"Run it with: {recipes[0].command}")  # in one line, to be copied
