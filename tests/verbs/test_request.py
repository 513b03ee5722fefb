"""The keywords of a run: those of the command line, each with a setting that exists."""

import math
from dataclasses import fields, replace

import pytest

from tests.training.making import made_config
from vitrail.base.errors import ConfigError
from vitrail.base.settings import flatten, to_dict
from vitrail.cli import finetune, train, vtab
from vitrail.verbs.finetune import FinetuneRequest
from vitrail.verbs.request import EXECUTION, LENGTHS, PATHS, ClassifierRequest
from vitrail.verbs.train import TrainRequest
from vitrail.verbs.vtab import VtabRequest


def _names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def test_keywords_are_the_flags_by_the_same_names() -> None:
    assert _names(TrainRequest) - {"settings"} == _names(train.Arguments) - {"set", "json"}
    assert _names(FinetuneRequest) - {"settings"} == _names(finetune.Arguments) - {"set", "json", "pull"}
    assert _names(VtabRequest) == _names(vtab.Arguments) - {"json", "pull"}


def test_every_keyword_stands_for_a_setting_that_a_run_has() -> None:
    assert set(PATHS) | set(EXECUTION) <= _names(ClassifierRequest)
    assert set((PATHS | EXECUTION).values()) <= set(flatten(to_dict(made_config())))


def test_nothing_is_asked_for_by_default() -> None:
    request = ClassifierRequest()
    assert (request.changes, request.execution, request.size) == ({}, {}, None)
    assert not any(request.asks(name) for name in (*PATHS, *EXECUTION))


def test_what_is_asked_for_has_its_path_and_a_path_by_hand_the_last_word() -> None:
    request = ClassifierRequest(seed=0, batch=8, averaging=0.0, freeze=["head.*"], settings={"batch": 4})
    assert request.changes == {"seed": 0, "batch": 4, "averaging": None, "optimizer.frozen": ["head.*"]}
    work = ClassifierRequest(device="cpu", workers=0, recompute=True, micro_batch="auto", checkpoint_every=3)
    assert work.execution == {"execution.device": "cpu", "execution.workers": 0, "execution.recompute": True}
    assert work.changes == {"execution.checkpoint_every": 3}
    assert ClassifierRequest(micro_batch=4).execution == {"execution.micro_batch": 4}


def test_one_number_is_a_square() -> None:
    assert ClassifierRequest(image_size=32).size == (32, 32)
    assert ClassifierRequest(image_size=(32, 48)).size == (32, 48)


def test_the_data_are_those_of_the_keywords_and_of_paths_by_hand() -> None:
    request = ClassifierRequest(fraction=0.5, balanced=True, settings={"data.split_seed": 7, "seed": 3})
    config = request.data_config("photos")
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
        request_.data_config("photos")


def test_keywords_that_shape_a_run_cannot_change_a_stored_one() -> None:
    request = TrainRequest(resume="run", minutes=3.0, model="B/16", micro_batch="auto", workers=2)
    with pytest.raises(ConfigError, match=r"`minutes`, `model`, `micro_batch` auto cannot change .* without `resume`"):
        request.refuse((*LENGTHS, "model"), "resume")
    replace(request, minutes=None, model=None, micro_batch=None).refuse(("model",), "resume")
