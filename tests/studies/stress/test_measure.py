from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.data.pictures import dataset, encoded, photo
from tests.studies.stress.making import TESTS, contestant, measuring, scenes
from vitrail.base.errors import InputError
from vitrail.base.progress import silent
from vitrail.evaluation.bootstrap import Interval
from vitrail.studies.stress import measure
from vitrail.studies.stress.figures import curve, relative_error, summarise
from vitrail.studies.stress.stage import Contestant
from vitrail.studies.stress.worst import worst_images

SOME = [
    replace(TESTS[name], levels=TESTS[name].levels[1:3])
    for name in ("occlusion-random", "occlusion-salient", "shuffle", "fog", "rotation")
]


def shown_pixels(monkeypatch: pytest.MonkeyPatch, contestants: list[Contestant], batch: int) -> dict:
    """Return every image that each model was shown, by model, column of work, and order."""
    shown: dict[str, list[torch.Tensor]] = {own.name: [] for own in contestants}
    own_scores = Contestant.scores

    def scores(self: Contestant, pixels: torch.Tensor) -> torch.Tensor:
        shown[self.name].append(pixels.clone())
        return own_scores(self, pixels)

    with monkeypatch.context() as patch:
        patch.setattr(Contestant, "scores", scores)
        measuring(contestants, SOME, batch=batch).answers(silent)
    columns = 1 + sum(len(test.levels) for test in SOME)
    return {name: [torch.cat(calls[at::columns]) for at in range(columns)] for name, calls in shown.items()}


def test_every_model_and_every_batch_sees_the_same_bits(monkeypatch) -> None:
    both = [contestant(), contestant("resnet")]
    alone, together = (shown_pixels(monkeypatch, both, batch) for batch in (1, 7))
    for column, pixels in enumerate(together["vit"]):
        assert len(pixels) == 14
        assert torch.equal(pixels, together["resnet"][column])
        assert torch.equal(pixels, alone["vit"][column])


def test_one_model_sees_what_it_sees_beside_another(monkeypatch) -> None:
    """But for the salient patches, on which all models together decide."""
    columns = [(test.name, level) for test in SOME for level in test.levels]
    first = shown_pixels(monkeypatch, [contestant()], 14)["vit"]
    beside = shown_pixels(monkeypatch, [contestant(), contestant("resnet")], 14)["vit"]
    for (name, _), one, two in zip([("clean", 0), *columns], first, beside, strict=True):
        assert name == "occlusion-salient" or torch.equal(one, two)


def test_attacks_start_alike_for_every_batch(monkeypatch) -> None:
    starts: dict[int, list[torch.Tensor]] = {}
    for batch in (1, 7):
        kept = starts.setdefault(batch, [])

        def attack(scores, pixels, classes, *, bounds, start, steps, kept=kept):  # noqa: ARG001
            kept.append((bounds * start).clone())
            return pixels

        monkeypatch.setattr(measure, "pgd", attack)
        measuring([contestant()], [TESTS["patch"]], batch=batch).answers(silent)
    levels = len(TESTS["patch"].levels)
    for at in range(levels):
        assert torch.equal(torch.cat(starts[1][at::levels]), torch.cat(starts[7][at::levels]))


def test_accuracy_is_what_counting_by_hand_gives() -> None:
    own, test = contestant(), TESTS["shuffle"]
    work = measuring([own], [test])
    answers = work.answers(silent)
    data = scenes()
    subjects = work.subjects(range(14), [data.image(index) for index in range(14)])
    for number, point in enumerate(curve(answers, 0, test)):
        pixels = torch.stack([measure.stressed(subject, test, test.levels[number]) for subject in subjects])
        right = (own.engine.logits(pixels).argmax(dim=1).numpy() == data.targets).mean()
        assert point.accuracy.value == pytest.approx(right)
        assert point.accuracy.low <= right <= point.accuracy.high
    (summary,) = summarise(answers, [test], resamples=100)
    assert summary.means["shuffle"].value == pytest.approx(
        np.mean([point.accuracy.value for point in curve(answers, 0, test)])
    )


def test_a_model_of_another_size_gets_the_stressed_images_resized() -> None:
    small, large = contestant(), contestant("resnet", size=(40, 48))
    answers = measuring([small, large], [TESTS["fog"]]).answers(silent)
    assert answers.measured(1, 3)
    pixels = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    assert large.seen(pixels).shape == (2, 3, 40, 48)
    assert small.seen(pixels) is pixels


def test_other_sizes_are_whole_patches_and_models_that_have_one_grid_are_left_out() -> None:
    notes: list[str] = []
    fixed = contestant(positions="relative")
    work = measuring([contestant(), fixed], [TESTS["resolution"]], note=notes.append)
    answers = work.answers(silent)
    assert [point.level for point in curve(answers, 0, TESTS["resolution"])] == list(TESTS["resolution"].levels)
    assert curve(answers, 1, TESTS["resolution"]) == ()
    assert len(notes) == 1
    assert "is left out of resolution at 0.5" in notes[0]
    assert contestant().size_at(0.75) == (12, 12)
    assert contestant("resnet").size_at(1.25) == (20, 20)
    assert "resolution" not in summarise(answers, [TESTS["resolution"]], resamples=100)[1].means


def test_the_mean_corruption_error_is_the_published_formula() -> None:
    errors = np.array([[0.2, 0.4], [0.5, 0.7]])
    baseline = np.array([[0.4, 0.8], [0.5, 0.5]])
    assert relative_error(errors, baseline) == pytest.approx((0.6 / 1.2 + 1.2 / 1.0) / 2)
    assert relative_error(baseline, baseline) == 1
    assert np.isnan(relative_error(errors, np.zeros((2, 2))))


def test_figures_of_two_models_are_paired() -> None:
    tests = [TESTS["fog"], TESTS["jpeg"]]
    twins = [contestant(), contestant()]
    first, second = summarise(measuring(twins, tests).answers(silent), tests, resamples=100)
    assert second.changes["fog"] == Interval(value=0.0, low=0.0, high=0.0)
    assert second.corruption_error == Interval(value=1.0, low=1.0, high=1.0)
    assert first.changes == {}
    assert first.mean_error == second.mean_error
    assert first.mean_error is not None
    assert first.mean_error.value == pytest.approx(1 - np.mean([first.means[test.name].value for test in tests]))
    assert [point.level for point in first.severities] == [1, 2, 3, 4, 5]
    answers = measuring(twins, tests).answers(silent)
    for place, point in enumerate(first.severities):
        right = [answers.right(0, 1 + place).mean(), answers.right(0, 6 + place).mean()]
        assert point.accuracy.value == pytest.approx(np.mean(right))
        assert point.accuracy.low <= point.accuracy.value <= point.accuracy.high


def test_images_that_cannot_be_read_are_left_out() -> None:
    notes: list[str] = []
    found = [encoded(photo(0)), b"no image", encoded(photo(2)), encoded(photo(3))]
    work = measuring([contestant()], [TESTS["fog"]], dataset=dataset(found, [0, 1, 2, 3]), note=notes.append)
    answers = work.answers(silent)
    assert answers.counted.tolist() == [True, False, True, True]
    assert [name for name, _ in work.failures] == ["picture 1"]
    assert len(answers.right(0, 0)) == 3
    with pytest.raises(InputError, match="no image of pictures could be read"):
        measuring([contestant()], [TESTS["fog"]], dataset=dataset([b"no", b"none"], [0, 1])).answers(silent)


def test_scores_that_are_not_finite_are_refused() -> None:
    broken = contestant()
    with torch.no_grad():
        broken.engine.model.head.linear.bias[0] = torch.nan
    with pytest.raises(InputError, match="scores are not finite"):
        measuring([broken], [TESTS["fog"]]).answers(silent)


def test_the_worst_images_were_right_when_clean_and_are_wrong_under_the_least_stress() -> None:
    tests = [TESTS[name] for name in ("occlusion-random", "shuffle", "rotation", "pgd", "resolution")]
    work = measuring([contestant()], tests)
    work.targets = own_answers(work)
    answers = work.answers(silent)
    assert answers.right(0, 0).all()
    worst = {broken.test.name: broken for broken in worst_images(work, answers)}
    assert {"occlusion-random", "shuffle", "pgd"} <= set(worst)
    for name, broken in worst.items():
        levels = sorted(TESTS[name].levels, key=lambda level: abs(level - TESTS[name].start))
        first = next(
            level for level in levels if not answers.right(0, answers.columns.index((TESTS[name], level))).all()
        )
        assert abs(broken.level - TESTS[name].start) == abs(first - TESTS[name].start)
        assert broken.truth != broken.answer
        assert not torch.equal(broken.clean, broken.changed)


def own_answers(work: measure.Measuring) -> np.ndarray:
    """Return the classes that the model itself answers on clean images."""
    own, data = work.contestants[0], work.dataset
    pixels = torch.stack([work.stage.bring(data.image(index)) for index in range(len(data))])
    return own.scores(pixels).argmax(dim=1).numpy()[None]
