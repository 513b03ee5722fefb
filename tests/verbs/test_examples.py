"""The example of every function that is a verb runs, and shows what it says."""

import doctest
import inspect
from types import NoneType, UnionType
from typing import get_args

import numpy
import pytest

import vitrail

pytestmark = pytest.mark.usefixtures("unchecked")  # examples are what a user types: 7 where 7.0 is meant

VERBS = [name for name, home in vitrail._HOMES.items() if home.startswith("vitrail.verbs.") and name[0].islower()]


def test_there_are_verbs() -> None:
    assert len(VERBS) >= 10


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_a_verb_runs(name) -> None:
    docstring = inspect.getdoc(getattr(vitrail, name)) or ""
    example = doctest.DocTestParser().get_doctest(docstring, {"vitrail": vitrail, "numpy": numpy}, name, None, 0)
    assert example.examples, f"vitrail.{name} has no example"
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", [name for name in VERBS if name not in ("remove_pulled",)])
def test_a_result_is_a_public_name_and_shows_itself_in_a_notebook(name) -> None:
    result = inspect.signature(getattr(vitrail, name)).return_annotation
    options = get_args(result) if isinstance(result, UnionType) else (result,)
    kinds = {get_args(option)[0] if get_args(option) else option for option in options} - {NoneType}
    for kind in kinds:
        public = getattr(vitrail, kind if isinstance(kind, str) else kind.__name__)
        assert kind in (public, public.__name__)
        assert callable(public._repr_html_)


@pytest.mark.parametrize("name", VERBS)
def test_keywords_and_result_are_typed(name) -> None:
    signature = inspect.signature(getattr(vitrail, name))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name
