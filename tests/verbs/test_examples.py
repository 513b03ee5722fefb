"""The example in the docstring of every verb runs and gives what it shows."""

import doctest
import importlib
import logging
import subprocess
import sys

import numpy
import pytest

import vitrail

VERBS = ("evaluate", "fewshot", "predict")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_runs(verb: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    function = getattr(importlib.import_module(f"vitrail.verbs.{verb}"), verb)
    (example,) = doctest.DocTestFinder(recurse=False).find(
        function, verb, globs={"vitrail": vitrail, "numpy": numpy, "__name__": "__main__"}
    )
    assert example.examples
    done = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
    assert done.failed == 0


def test_the_verbs_are_functions_whatever_was_imported_before() -> None:
    rooms = "import vitrail.evaluation.classify, vitrail.prediction.classifier, vitrail.verbs.fewshot"
    code = f"import vitrail; {rooms}; [getattr(vitrail, verb).__call__ for verb in {VERBS}]"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
