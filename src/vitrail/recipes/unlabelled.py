"""Every recipe for images without labels, by name: those that complete images, then those that compare views."""

from vitrail.recipes.selfsup import SELFSUP, SelfSupRecipe
from vitrail.recipes.views import view_recipes

UNLABELLED: dict[str, SelfSupRecipe] = SELFSUP | {recipe.name: recipe for recipe in view_recipes()}
