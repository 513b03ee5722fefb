import pytest

import vitrail
from vitrail import ConfigError
from vitrail.recipes.names import recipe_names


def test_every_recipe_is_listed() -> None:
    assert list(vitrail.list_recipes().names) == recipe_names()


def test_a_pattern_lists_some_and_a_name_its_small_twin_too() -> None:
    recipes = vitrail.list_recipes(["finetune-cifar*", "imagenet1k-B/16-smoke"])
    assert recipes.names == ("finetune-cifar10", "finetune-cifar100", "imagenet1k-B/16-smoke")
    assert [recipe.finetuning for recipe in recipes] == [True, True, False]
    assert [table.title for table in recipes.tables()] == ["Pre-training", "Fine-tuning"]


def test_one_recipe_has_its_command_cost_and_the_papers_result() -> None:
    recipe = vitrail.recipe("jft300m-L/16-14ep")
    assert (recipe.epochs, recipe.paper_exaflops) == (14, 1567)  # Table 6
    assert recipe.exaflops == pytest.approx(1567, rel=0.01)
    assert recipe.paper_result.startswith("87.12%")  # Table 6
    assert recipe.command.endswith("vitrail train DATA --recipe jft300m-L/16-14ep")
    for shown in (repr(recipe), recipe._repr_html_()):
        assert recipe.command in shown
        assert "87.12%" in shown


@pytest.mark.parametrize("name", ["imagenet1k-B/15", "finetune-pet", "nothing-*"])
def test_what_is_not_a_recipe_is_one_sentence(name) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean|matches no recipe"):
        vitrail.list_recipes(name)


def test_one_recipe_is_not_a_pattern() -> None:
    with pytest.raises(ConfigError, match="there is no recipe 'finetune-\\*'"):
        vitrail.recipe("finetune-*")
