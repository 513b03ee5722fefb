"""Numbers beyond what any run has are refused with the setting's name, before anything is built."""

import math
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tests.training.making import made_config, made_run
from vitrail.base.errors import ConfigError, InputError
from vitrail.base.settings import flatten, to_dict
from vitrail.runs.bounds import LARGEST
from vitrail.runs.config import read_config, with_settings

OF_OTHER_KINDS = {"epochs", "model.width", "model.blocks", "model.backbone.width", "model.backbone.blocks"}
OF_OTHER_OBJECTIVES = {
    "objective.local_size": "dino",
    "objective.local_views": "dino",
    "objective.prototypes": "dino",
    "objective.hidden": "dino",
    "objective.bottleneck": "dino",
    "objective.outputs": "moco",
}


def test_every_bound_is_of_a_setting() -> None:
    assert set(LARGEST) <= set(flatten(to_dict(made_config()))) | OF_OTHER_KINDS | set(OF_OTHER_OBJECTIVES)


@pytest.mark.parametrize("path", sorted(set(LARGEST) - OF_OTHER_KINDS - set(OF_OTHER_OBJECTIVES)))
def test_a_number_beyond_its_bound_is_refused_by_its_name(path: str) -> None:
    settings = to_dict(made_config())
    pair = isinstance(flatten(settings)[path], list)
    for number in (int(LARGEST[path]) + 2, 10**30, 10**400):
        value = [number, number] if pair else float(min(number, 10**300)) if path == "minutes" else number
        with pytest.raises(ConfigError, match=path.removeprefix("model.").removeprefix("preprocessing.")):
            read_config(with_settings(settings, {path: value}), "the settings")


@pytest.mark.parametrize(("path", "kind"), OF_OTHER_OBJECTIVES.items())
def test_a_number_of_an_objective_beyond_its_bound_is_refused_by_its_name(path: str, kind: str) -> None:
    changes = {"objective.kind": kind, path: int(LARGEST[path]) + 2}
    with pytest.raises(ConfigError, match=path.removeprefix("objective.")):
        read_config(with_settings(to_dict(made_config()), changes), "the settings")


FLOATS = [path for path, value in flatten(to_dict(made_config())).items() if isinstance(value, float)]


@pytest.mark.parametrize("path", FLOATS)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_wherever_it_is(path: str, number: float) -> None:
    with pytest.raises(ConfigError, match=path.rpartition(".")[2]):
        read_config(with_settings(to_dict(made_config()), {path: number}), "the settings")
    with pytest.raises(ConfigError, match=r"finite|must be|goes from"):
        _replaced(made_config(), path, number)


def _replaced(config: Any, path: str, number: float) -> Any:
    name, _, rest = path.partition(".")
    assert is_dataclass(config)
    assert name in {field.name for field in fields(config)}
    return replace(config, **{name: _replaced(getattr(config, name), rest, number) if rest else number})


def test_a_model_that_no_memory_holds_is_refused_before_it_is_built(tmp_path) -> None:
    config = made_config()
    large = replace(config, model=replace(config.model, dim=32_768, mlp_dim=131_072, depth=48))
    # 12 dim^2 weights in each of 48 blocks, and four numbers of four bytes for each: 9,216 GiB and a little.
    with pytest.raises(InputError, match=r"training 32768x48.* needs 9\.\d+ TiB of memory, but this machine has"):
        made_run(tmp_path, large).check()
