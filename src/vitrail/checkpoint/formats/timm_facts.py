"""What the tensors of a timm model do not show: from its arguments, else from a table of architectures, else asked for.

`timm_models.json` has a row for every architecture (`benchmarks/timm_table.py` writes it). Which rows count:

1. the architecture that the user or a `config.json` names;
2. else all of the same sizes and parts, if there are any;
3. else all of the same parts, whose number of heads is ignored.

A fact on which these rows disagree is asked for, by the name of the setting that answers it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from vitrail.base.errors import CheckpointError, did_you_mean
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.formats.folder import setting
from vitrail.checkpoint.formats.timm_parts import parts_of
from vitrail.checkpoint.formats.timm_relatives import relatives
from vitrail.checkpoint.infer import count_blocks
from vitrail.model.rotary import RotaryConfig

Row = Mapping[str, Any]
POOLS = {"token": "class-token", "avg": "mean", "map": "attention"}
GELUS = {"gelu": "erf", "gelu_tanh": "tanh", "quick_gelu": "quick"}
# A fact -> the setting that answers it, and the value of a row that leaves it out.
_FACTS = {"heads": "num_heads", "gelu": "gelu", "norm_eps": "norm_eps", "pool": "pool"}
HEADS_DIFFER = "heads_differ"
"""What the names of a release may tell: why its heads are not those of timm's models of the same sizes."""
NORMS_DIFFER = "norms_differ"
"""The same: why the norms inside its blocks may not be where its tensors show them."""
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of one file."""

    origin: str
    rows: Mapping[str, Row]
    """The architectures that it may be."""
    sized: bool
    """Whether these have its sizes too."""
    arguments: Mapping[str, Any]
    """The arguments of timm's constructor that a `config.json` has."""
    hints: Mapping[str, Any]
    """What the user knows."""

    def tell(self, fact: str, stated: Any = None) -> Any:
        """Return a fact: the user's setting, what is stated beside the weights, or what the rows agree on."""
        answer = _FACTS[fact]
        if answer in self.hints:
            return self.hints[answer]
        if stated is not None:
            return stated
        if fact == "heads" and HEADS_DIFFER in self.hints:
            raise CheckpointError(f"{self.origin} does not state its num_heads: {self.hints[HEADS_DIFFER]}; give it.")
        values = {name: row.get(fact) for name, row in self.rows.items()}
        different = {str(value): name for name, value in values.items()}
        if len(different) == 1 and (self.sized or fact != "heads"):
            value = next(iter(values.values()))
            return POOLS.get(str(value), value) if fact == "pool" else value
        known = ", ".join(f"{name} {POOLS.get(value, value)}" for value, name in list(different.items())[:_SHOWN])
        why = (
            f"timm's models like it differ ({known})" if self.rows and self.sized else "no model of timm has its sizes"
        )
        raise CheckpointError(
            f"{self.origin} does not state its {answer}, and {why}; give {answer}, or the model's name in timm as "
            "architecture."
        )

    @property
    def differs(self) -> str | None:
        """Why it is another model although its tensors look like ours."""
        reasons = {row.get("differs") for row in self.rows.values()}
        return next(iter(reasons)) if len(reasons) == 1 else None

    def tell_rotary(self) -> dict[str, Any] | None:
        """Return the rotary positions that the rows agree on, which no tensor shows."""
        changed = sorted(name for name in self.arguments if name.startswith(("rope_", "ref_feat", "use_rot")))
        if changed:
            raise CheckpointError(
                f"{self.origin} has rotary positions with arguments of its own ({', '.join(changed)}), which are not "
                "read; only those of timm's architectures are."
            )
        kinds = {json.dumps(row.get("rotary")): name for name, row in self.rows.items()}
        if len(kinds) > 1:
            raise CheckpointError(
                f"{self.origin} may or may not have rotary positions, which no tensor shows, since timm's models like "
                f"it differ ({', '.join(list(kinds.values())[:_SHOWN])}); give the name in timm as architecture."
            )
        return json.loads(next(iter(kinds), "null"))


@cache
def table() -> Mapping[str, Row]:
    """Read the table of architectures, and add those that are released elsewhere with timm's names."""
    text = files("vitrail.checkpoint.formats").joinpath("timm_models.json").read_text()
    rows: dict[str, Row] = json.loads(text)["models"]
    return rows | relatives(rows)


def find_facts(
    source: TensorSource, settings: Mapping[str, Any], arguments: Mapping[str, Any], hints: Mapping[str, Any]
) -> Facts:
    """Choose the rows that a file may be."""
    if NORMS_DIFFER in hints and "architecture" not in hints:
        raise CheckpointError(f"{source.origin} is {hints[NORMS_DIFFER]}")
    rows, sized = _rows(source, settings, hints)
    return Facts(origin=source.origin, rows=rows, sized=sized, arguments=arguments, hints=hints)


def _rows(
    source: TensorSource, settings: Mapping[str, Any], hints: Mapping[str, Any]
) -> tuple[Mapping[str, Row], bool]:
    answer = hints.get("architecture")
    if answer is not None and plain_name(answer) not in table():
        raise CheckpointError(
            f"timm has no Vision Transformer {answer!r} that is known here.{did_you_mean(plain_name(answer), table())}"
        )
    name = plain_name(answer or setting(dict(settings), "architecture", str, ""))
    if name in table():
        return {name: table()[name]}, True
    if name and "num_features" in settings:  # which timm's config.json has, and the arguments of a run have not
        raise CheckpointError(
            f"{source.origin} is timm's {name!r}, which is not known here, so that it may differ in what no tensor "
            "shows; if one of timm's Vision Transformers is built like it, give the name of that as architecture."
        )
    parts, depth = parts_of(source.shapes), count_blocks(source, r"blocks\.(\d+)\.")
    equal = {name: row for name, row in table().items() if (row["parts"], row["depth"]) == (parts, depth)}
    structure = parts.split()[3:]
    return (
        (equal, True)
        if equal
        else (
            {name: row for name, row in table().items() if row["parts"].split()[3:] == structure},
            False,
        )
    )


def plain_name(name: str) -> str:
    """Return the name of an architecture without its tag and without the place where it was found."""
    return name.partition(".")[0].rpartition("/")[2].rpartition(":")[2]


def rotary_config(rotary: Mapping[str, Any] | None) -> RotaryConfig | None:
    """Return our settings of a row's rotary positions."""
    if rotary is None:
        return None
    reference = rotary.get("reference")
    return RotaryConfig(
        base=rotary["base"],
        coordinates=rotary["coordinates"],
        reference=None if reference is None else (reference[0], reference[1]),
        offset=rotary.get("offset", 0.0),
    )


def row_order(rotary: Mapping[str, Any] | None, dim: int, heads: int) -> tuple[int, ...] | None:
    """Return which of their rows of queries, keys and values each of ours is; None where they are the same.

    timm may pair neighbouring values of a head where we pair the halves, and turn columns before rows. The product of
    a query and a key is the same when both are put into another order.
    """
    if rotary is None or not (rotary["interleaved"] or rotary["columns_first"]):
        return None
    width = dim // heads
    order = []
    for value in range(width):
        second, pair = divmod(value, width // 2)
        pair = (pair + width // 4) % (width // 2) if rotary["columns_first"] else pair
        order.append(2 * pair + second if rotary["interleaved"] else pair + second * (width // 2))
    turned = [start + value for start in range(0, 2 * dim, width) for value in order]
    return (*turned, *range(2 * dim, 3 * dim))
