"""List the recipes: the paper's runs, their cost and results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

from vitrail.base.errors import ConfigError
from vitrail.base.table import Table, Tabular
from vitrail.recipes.backbone import EPOCHS, NAME
from vitrail.recipes.finetuning import FINETUNING
from vitrail.recipes.names import SMALL_DATA, SMOKE, find_recipe, recipe_names
from vitrail.recipes.paper import DATASETS
from vitrail.recipes.pretraining import PRETRAINING
from vitrail.recipes.unlabelled import UNLABELLED
from vitrail.verbs.patterns import matching


@dataclass(frozen=True, kw_only=True, repr=False)
class RecipeSummary(Tabular):
    """A recipe: its purpose, its cost, and the paper's result."""

    name: str
    """The name that `train` or `finetune` takes."""
    command: str
    """The command that runs it."""
    epochs: int | None = None
    """Passes over the data; None for fine-tuning, which is counted in steps."""
    exaflops: float | None = None
    """The arithmetic of the whole run."""
    paper_exaflops: float | None = None
    """The same, as the paper reports it."""
    paper_result: str | None = None
    """The accuracy that the paper reports."""
    about: str
    """Model, data and table, in a few words."""

    @property
    def finetuning(self) -> bool:
        """Whether it adapts a model; else it trains one from the start."""
        return self.name.removesuffix(SMOKE) in FINETUNING

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return asdict(self)

    def tables(self) -> list[Table]:
        """Return a table of one row, with what the recipe does and the command that runs it."""
        return [replace(_table([self]), notes=(f"{self.name}: {self.about}.", f"Run it with: {self.command}"))]


@dataclass(frozen=True, kw_only=True, repr=False)
class RecipeList(Tabular, Sequence[RecipeSummary]):
    """Recipes in the order of the paper's tables."""

    rows: tuple[RecipeSummary, ...]
    """The recipes."""

    def __len__(self) -> int:
        """Count the recipes."""
        return len(self.rows)

    def __iter__(self) -> Iterator[RecipeSummary]:
        """Walk over the recipes."""
        return iter(self.rows)

    @overload
    def __getitem__(self, at: int) -> RecipeSummary: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[RecipeSummary]: ...
    def __getitem__(self, at: int | slice) -> RecipeSummary | Sequence[RecipeSummary]:
        """Return a recipe by its place."""
        return self.rows[at]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the recipes."""
        return tuple(row.name for row in self.rows)

    def tables(self) -> list[Table]:
        """Return a table of pre-training and one of fine-tuning, where there are any."""
        kinds = ([row for row in self.rows if row.finetuning == finetuning] for finetuning in (False, True))
        return [_table(rows) for rows in kinds if rows]


def list_recipes(pattern: str | Iterable[str] = "*") -> RecipeList:
    """List recipes with their length, cost, and the result that the paper reports.

    `pattern` is a name, a pattern such as "imagenet1k-*", or several of them. NAME-smoke is the small twin of a
    recipe: the same kind of model, optimiser, schedule and loss, in a second.

    >>> vitrail.list_recipes("imagenet1k-B/*").names
    ('imagenet1k-B/16', 'imagenet1k-B/32')
    """
    names = matching(pattern, recipe_names(), kind="recipe")
    if not names:
        raise ConfigError("there is no pattern; '*' lists every recipe.")
    for name in names:
        _check(name)
    return RecipeList(rows=tuple(map(_describe, names)))


def recipe(name: str) -> RecipeSummary:
    """Return one recipe: what it does, the command that runs it, its cost, and the paper's result.

    >>> vitrail.recipe("imagenet1k-B/16").paper_result
    '74.79% top-1 at 224 px'
    """
    _check(name)
    return _describe(name)


def _check(name: str) -> None:
    """Refuse a name that is not a recipe's."""
    if name.removesuffix(SMOKE) not in (*FINETUNING, *UNLABELLED):
        find_recipe(name)


def _describe(name: str) -> RecipeSummary:
    base = name.removesuffix(SMOKE)
    if name.endswith(SMOKE):
        verb = (
            "finetune DATA --from MODEL"
            if base in FINETUNING
            else "pretrain DATA"
            if base in UNLABELLED
            else "train DATA"
        )
        command = f"vitrail {verb} --recipe {name}"
        return RecipeSummary(name=name, command=command, about=f"the small twin of {base}")
    if name == SMALL_DATA:
        about = "chosen from the data: the default of training"
        return RecipeSummary(name=name, command="vitrail train DATA", about=about)
    if name == NAME:
        about = "the backbone of the package, on tens of thousands of photos (docs/backbone.md)"
        return RecipeSummary(name=name, command=f"vitrail train DATA --recipe {name}", epochs=EPOCHS, about=about)
    if name in FINETUNING:
        adapting = FINETUNING[name]
        return RecipeSummary(
            name=name,
            command=f"vitrail finetune DATA --from MODEL --recipe {name}",
            exaflops=adapting.exaflops,
            paper_result=adapting.published,
            about=adapting.about,
        )
    if name in UNLABELLED:
        unlabelled = UNLABELLED[name]
        return RecipeSummary(
            name=name,
            command=f"vitrail pretrain DATA --recipe {name}",
            exaflops=unlabelled.exaflops,
            paper_result=unlabelled.published or None,
            about=unlabelled.about,
        )
    training = PRETRAINING[name]
    return RecipeSummary(
        name=name,
        command=f"torchrun --nproc-per-node 8 -m vitrail train DATA --recipe {name}",
        epochs=training.epochs,
        exaflops=training.exaflops,
        paper_exaflops=training.published_exaflops,
        paper_result=training.published,
        about=f"{training.model} on {DATASETS[training.row.data].title}, Table 3",
    )


def _table(rows: Sequence[RecipeSummary]) -> Table:
    """Lay out recipes of one kind."""
    if rows[0].finetuning:
        short = tuple((row.name, _figure(row.exaflops), row.paper_result or "-") for row in rows)
        return Table(title="Fine-tuning", columns=("recipe", "exaFLOPs", "value"), rows=short)
    cells = tuple(
        (row.name, str(row.epochs or "-"), _figure(row.exaflops), _figure(row.paper_exaflops), row.paper_result or "-")
        for row in rows
    )
    return Table(title="Pre-training", columns=("recipe", "epochs", "exaFLOPs", "paper's", "value"), rows=cells)


def _figure(value: float | None) -> str:
    return f"{value:.4g}" if value else "-"
