"""The keywords of a run: those of the command line, each with a setting that exists."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from tests.training.making import made_config
from vitrail.base.errors import ConfigError
from vitrail.cli import finetune, train, vtab
from vitrail.model.mixer_settings import MixerConfig
from vitrail.runs.changes import EXECUTION, PATHS
from vitrail.runs.config import RunConfig
from vitrail.verbs.finetune import FinetuneRequest
from vitrail.verbs.pretrain import PretrainRequest
from vitrail.verbs.request import LENGTHS, ClassifierRequest
from vitrail.verbs.train import TrainRequest
from vitrail.verbs.vtab import VtabRequest


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def test_keywords_are_the_flags_by_the_same_names() -> None:
    assert _names(TrainRequest) - {"settings"} == _names(train.Arguments) - {"set", "json"}
    assert _names(FinetuneRequest) - {"settings"} == _names(finetune.Arguments) - {"set", "json", "pull"}
    assert _names(VtabRequest) == _names(vtab.Arguments) - {"json", "pull"}


def _type(path: str) -> Any:
    """Return the type of a setting of a run, by its path."""
    kind: Any = RunConfig
    for name in path.split("."):
        members = [kind, *getattr(kind, "members", {}).values()]
        kind = next(hints[name] for hints in map(get_type_hints, members) if name in hints)
    return kind


def _options(kind: Any) -> set[Any]:
    """Return the types that a value may have; of a sequence, those of its items."""
    options = set(get_args(kind)) if get_origin(kind) in (Union, UnionType) else {kind}
    sequences = {option for option in options if get_origin(option) in (tuple, Sequence)}
    return options - sequences - {type(None), Literal["auto"]} | {get_args(option)[0] for option in sequences}


def test_a_mixer_is_one_of_its_family() -> None:
    (names,) = _options(get_type_hints(TrainRequest)["mixer"])
    assert set(get_args(names)) == set(MixerConfig.members)


@pytest.mark.parametrize("keyword", [*(keyword for keyword in PATHS if keyword != "mixer"), *EXECUTION])
def test_every_keyword_has_the_type_of_the_setting_that_it_stands_for(keyword: str) -> None:
    request = PretrainRequest if keyword == "probe" else ClassifierRequest
    assert _options(get_type_hints(request)[keyword]) == _options(_type((PATHS | EXECUTION)[keyword]))


def test_nothing_is_requested_by_default() -> None:
    request, config = ClassifierRequest(), made_config()
    assert (request.deciding, request.size, request.first_seed, request.cadence) == ((), None, 0, None)
    assert not any(request.requests(name) for name in (*set(PATHS) - {"probe", "mixer"}, *EXECUTION))
    assert request.applied(config) == config


def test_what_is_requested_has_its_path_and_a_path_by_hand_the_last_word() -> None:
    request = ClassifierRequest(seed=0, batch=8, averaging=0.0, freeze=["head.*"], settings={"batch": 4})
    assert request.deciding == ("batch", "seed", "averaging", "optimizer.frozen")
    config = request.applied(replace(made_config(), seed=7, averaging=0.9))
    assert (config.seed, config.batch, config.averaging, config.optimizer.frozen) == (0, 4, None, ("head.*",))
    work = ClassifierRequest(device="cpu", workers=0, recompute=True, micro_batch="auto", checkpoint_every=3)
    execution = work.applied(made_config()).execution
    assert (execution.device, execution.workers, execution.recompute) == ("cpu", 0, True)
    assert (execution.micro_batch, execution.checkpoint_every) == (None, 3)
    assert work.deciding == ("execution.checkpoint_every",)
    assert ClassifierRequest(micro_batch=4).applied(made_config()).execution.micro_batch == 4


def test_settings_are_made_together_before_any_is_checked() -> None:
    config = replace(made_config(), steps=100, schedule=replace(made_config().schedule, warmup_steps=50))
    with pytest.raises(ConfigError, match="warm"):
        ClassifierRequest().applied(config, steps=4)
    assert ClassifierRequest(warmup=1).applied(config, steps=4).steps == 4
    assert ClassifierRequest(settings={"schedule.warmup_steps": 1}).applied(config, steps=4).steps == 4


def test_the_root_of_a_manifest_is_stored_as_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "images").mkdir()
    monkeypatch.chdir(tmp_path)
    request = ClassifierRequest(root="images")
    assert request.data_config("list.csv").root == str(tmp_path / "images")
    assert request.applied(made_config()).data.root == str(tmp_path / "images")


def test_one_number_is_a_square() -> None:
    assert ClassifierRequest(image_size=32).size == (32, 32)
    assert ClassifierRequest(image_size=(32, 48)).size == (32, 48)


def test_the_data_are_those_of_the_keywords_and_of_paths_by_hand() -> None:
    request = ClassifierRequest(fraction=0.5, balanced=True, settings={"data.split_seed": 7, "seed": 3})
    config = replace(request, data="photos").new_data()
    assert (config.where, config.fraction, config.balanced, config.split_seed) == ("photos", 0.5, True, 7)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (ClassifierRequest(steps=3, epochs=2.0), "a run has one length: give `steps`, `epochs` or `minutes`"),
        (ClassifierRequest(minutes=math.nan), "`minutes` is nan, but must be above 0"),
        (ClassifierRequest(fraction=2.0), "`fraction` is 2.0, but must be above 0 and at most 1"),
        (ClassifierRequest(settings={"data.frction": 1}), "data"),
    ],
)
def test_data_that_cannot_be_had_are_refused_by_the_name_of_the_setting(request_: ClassifierRequest, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        request_.new_data()


def test_keywords_that_shape_a_run_cannot_change_a_stored_one() -> None:
    request = TrainRequest(resume="run", minutes=3.0, model="B/16", micro_batch="auto", workers=2)
    with pytest.raises(ConfigError, match=r"`minutes`, `model`, `micro_batch` auto cannot change .* without `resume`"):
        request.refuse((*LENGTHS, "model"), "resume")
    replace(request, minutes=None, model=None, micro_batch=None).refuse(("model",), "resume")
