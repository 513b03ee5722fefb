"""The flags of every verb beside what the functions behind them take."""

import inspect
from importlib import import_module
from typing import get_args

import pytest

import vitrail
from vitrail.base.trackers import TrackerName
from vitrail.checkpoint.formats.all import FORMATS
from vitrail.checkpoint.formats.names import NAMES
from vitrail.cli.main import VERBS
from vitrail.cli.usage import Field, read_fields
from vitrail.model.mixer_settings import MixerConfig, MixerName
from vitrail.recipes.paper import Preset
from vitrail.runs import plan
from vitrail.runs.execution import Device
from vitrail.training.optimizers import OptimizerName
from vitrail.training.schedules import Shape
from vitrail.training.step import Precision

FUNCTIONS = {"data": "survey", "models": "list_models", "recipes": "list_recipes", "studies": "list_studies"}


def flags(verb: str) -> dict[str, Field]:
    return {field.dest: field for field in read_fields(import_module(f"vitrail.cli.{verb}").Arguments)}


def test_choices_are_those_of_the_settings() -> None:
    assert ("vitrail", *dict.fromkeys(form.name for form in FORMATS if form.write is not None)) == NAMES
    assert set(get_args(MixerName)) == set(MixerConfig.members)
    for verb in ("train", "pretrain"):
        assert flags(verb)["mixer"].choices == get_args(MixerName)
    for verb in ("train", "finetune"):
        own = flags(verb)
        assert own["optimizer"].choices == get_args(OptimizerName)
        assert own["schedule"].choices == get_args(Shape)
        assert own["precision"].choices == get_args(Precision)
        assert own["track"].choices == get_args(TrackerName)
    for verb in ("train", "finetune", "vtab", "evaluate", "fewshot", "predict"):
        assert flags(verb)["device"].choices == get_args(Device)
    assert flags("plan")["preset"].choices == get_args(Preset)
    assert flags("plan")["optimizer"].choices == get_args(plan.Optimizer)
    assert flags("plan")["precision"].choices == get_args(plan.Precision)


@pytest.mark.parametrize("verb", VERBS)
def test_defaults_are_those_of_the_function(verb: str) -> None:
    parameters = inspect.signature(getattr(vitrail, FUNCTIONS.get(verb, verb))).parameters
    for name, field in flags(verb).items():
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        if type(default) in (int, float, bool) and not field.positional and field.default is not None:
            assert str(field.default) == str(default), name
