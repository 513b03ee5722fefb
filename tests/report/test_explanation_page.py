import numpy as np

from vitrail.report.explanation_page import ExplanationPage, MethodStory, render_explanations


def test_the_ticks_of_low_curves_are_not_rounded() -> None:
    points = np.array([0.1, 0.1])
    method = MethodStory(
        name="rollout", row=("rollout",), shares=np.array([0.0, 1.0]), deletion=points, insertion=points
    )
    page = render_explanations(ExplanationPage(title="t", images=(), methods=[method], columns=("method",), note=""))
    assert ">2.5%<" in page
    assert ">7.5%<" in page
