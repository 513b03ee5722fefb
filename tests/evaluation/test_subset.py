import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.making import FixedEngine, answers_of, pictures_of
from tests.training.making import Made
from vitrail.base.errors import InputError
from vitrail.data.dataset import Dataset
from vitrail.evaluation.subset import Choice, Scored, choose, class_scores

MODEL = ("cat", "dog", "emu", "fox", "gnu")


def data_of(labels: tuple[str, ...], targets: list[int]) -> Dataset:
    images = np.zeros((len(targets), 2, 2, 3), np.uint8)
    return Dataset(
        pictures=Made(images), rows=np.arange(len(targets)), targets=np.array(targets), labels=labels, where="pets"
    )


def _scores(logits: np.ndarray, choice: Choice) -> np.ndarray:
    return class_scores(torch.tensor(logits, dtype=torch.float32), choice).numpy()


def test_classes_in_another_order_are_matched_by_name() -> None:
    choice = choose(data_of(("gnu", "cat", "emu", "fox", "dog"), [0, 1, 2, 3, 4]), MODEL, 5)
    assert choice.whole
    assert choice.labels == MODEL
    assert choice.targets(np.array([0, 1, 4, -1])).tolist() == [4, 0, 1, -1]
    assert choice.notes == ()


def test_some_of_the_classes_are_scored_among_themselves_with_a_note() -> None:
    choice = choose(data_of(("Fox", "dog"), [0, 1, 1]), MODEL, 5)
    assert choice.labels == ("dog", "fox")
    assert choice.targets(np.array([0, 1, 1])).tolist() == [1, 0, 0]
    logits = np.array([[9, 1, 9, 2, 9], [9, 3, 9, 2, 9]])
    np.testing.assert_array_equal(_scores(logits, choice), logits[:, [1, 3]])
    assert "scored over 2 of 5 classes, those that pets has" in choice.notes[0]


def test_all_classes_can_stay_among_the_answers() -> None:
    choice = choose(data_of(("fox", "dog"), [0, 1]), MODEL, 5, all_classes=True)
    assert choice.whole
    assert choice.targets(np.array([0, 1])).tolist() == [3, 1]


def test_a_class_of_the_data_that_has_no_image_here_still_competes() -> None:
    assert choose(data_of(("cat", "dog", "emu"), [0, 1]), MODEL, 5).labels == ("cat", "dog", "emu")


def test_a_class_without_images_that_the_model_lacks_is_passed_over() -> None:
    choice = choose(data_of(("cat", "dog", "yak"), [0, 1]), MODEL, 5)
    assert choice.labels == ("cat", "dog")
    assert choice.places.tolist() == [0, 1, -1]


def test_classes_that_the_model_lacks_are_listed() -> None:
    with pytest.raises(InputError, match=r"pets has 2 classes that the model lacks: yak, zebra\. The model has 5: cat"):
        choose(data_of(("cat", "yak", "zebra"), [0, 1, 2]), MODEL, 5)


def test_one_class_alone_is_refused_because_every_answer_would_be_right() -> None:
    with pytest.raises(InputError, match="only one class of the model, dog"):
        choose(data_of(("dog",), [0, 0]), MODEL, 5)
    assert choose(data_of(("dog",), [0, 0]), MODEL, 5, all_classes=True).whole


def test_a_model_without_names_is_refused_but_takes_numbers_as_places() -> None:
    with pytest.raises(InputError, match=r"no class names to compare with those of pets .*`labels`"):
        choose(data_of(("cat", "dog"), [0, 1]), None, 5)
    choice = choose(data_of(("0", "1", "2"), [0, 2]), None, 5)
    assert choice.outputs.tolist() == [0, 1, 2]
    assert "taken as places" in choice.notes[0]


def test_names_may_appear_twice_when_the_lists_are_equal() -> None:
    twice = ("crane", "dog", "crane")
    assert choose(data_of(twice, [0, 2]), twice, 3).targets(np.array([2, 0])).tolist() == [2, 0]


@pytest.mark.parametrize("named", [False, True])
def test_imagenets_full_list_of_ids_is_taken_in_its_usual_order(named: bool) -> None:
    ids = ("n01440764", *(f"n{number:08d}" for number in range(2_000_000, 2_000_998)), "n15075141")
    words = ("tench, Tinca tinca", *(f"word {number}" for number in range(998)), "toilet tissue, toilet paper")
    choice = choose(data_of(ids, [0, 999]), words if named else None, 1000)
    assert choice.whole
    assert "usual order" in choice.notes[0]
    with pytest.raises(InputError, match="998 classes" if named else "no class names"):
        choose(data_of(ids[1:], list(range(998))), words if named else None, 1000)


def test_a_mapped_class_scores_as_high_as_the_highest_of_its_classes() -> None:
    choice = choose(
        data_of(("Pet", "Bird", "Rock"), [0, 0, 1, 2, 2]), MODEL, 5, class_map={"pet": ["dog", "cat"], "Bird": ["emu"]}
    )
    assert choice.labels == ("Pet", "Bird")
    assert choice.targets(np.array([0, 1, 2])).tolist() == [0, 1, -1]
    assert choice.notes[0] == "2 images of 1 classes are left out: Rock."
    logits = np.array([[1, 5, 3, 9, 9], [1, 2, 3, 9, 9]])
    np.testing.assert_array_equal(_scores(logits, choice), [[5, 3], [2, 3]])


def test_with_all_classes_an_unmapped_answer_is_wrong() -> None:
    choice = choose(
        data_of(("Pet", "Bird"), [0, 1]), MODEL, 5, class_map={"Pet": ["dog", "cat"], "Bird": ["emu"]}, all_classes=True
    )
    assert choice.labels == ("Pet", "Bird", "fox", "gnu")
    np.testing.assert_array_equal(_scores(np.array([[1, 5, 3, 9, 8]]), choice), [[5, 3, 9, 8]])


@pytest.mark.parametrize("everything", [False, True])
def test_classes_that_a_map_makes_the_same_are_scored_as_one(everything: bool) -> None:
    data = data_of(("dog", "emu", "Dog", "Rock"), [0, 1, 2, 3])
    class_map = {"dog": ["dog", "fox"], "Dog": ["fox", "dog"], "emu": ["emu"]}
    choice = choose(data, MODEL, 5, class_map=class_map, all_classes=everything)
    assert choice.labels == ("dog / Dog", "emu", *(("cat", "gnu") if everything else ()))
    assert choice.targets(data.targets).tolist() == [0, 1, 0, -1]
    scores = _scores(np.array([[1, 5, 3, 9, 8], [1, 5, 3, 2, 8], [4, 1, 3, 2, 8]]), choice)
    np.testing.assert_array_equal(scores[:, :2], [[9, 3], [5, 3], [2, 3]])
    assert any("dog and Dog" in note for note in choice.notes)


def test_the_advice_about_two_spellings_of_one_class_can_be_followed() -> None:
    logits = np.array([[0, 9, 1, 0, 0], [0, 9, 1, 0, 0], [0, 1, 9, 0, 0], [0, 1, 9, 0, 0]])
    data = data_of(("Dog", "dog", "emu"), [0, 1, 2, 1])
    with pytest.raises(InputError, match="`class_map`"):
        choose(data, MODEL, 5)
    choice = choose(data, MODEL, 5, class_map={"dog": ["dog"], "Dog": ["dog"], "emu": ["emu"]})
    answers = answers_of(_scores(logits, choice), choice.targets(data.targets))
    assert answers.confusion(2).tolist() == [[2, 1], [0, 1]]
    np.testing.assert_allclose(answers.scores(2).recall, [2 / 3, 1])


def test_a_map_that_makes_everything_one_class_is_refused() -> None:
    with pytest.raises(InputError, match="only one class of the model, dog / Dog"):
        choose(data_of(("dog", "Dog"), [0, 1]), MODEL, 5, class_map={"dog": ["dog"]})


@pytest.mark.parametrize(("labels", "named"), [(MODEL, "dog"), (None, "1")])
def test_classes_that_share_some_classes_of_the_model_are_refused(labels: tuple[str, ...] | None, named: str) -> None:
    with pytest.raises(InputError, match=f"gives {named} of the model to Pet and to Hound, of which one has other"):
        choose(data_of(("Pet", "Hound"), [0, 1]), labels, 5, class_map={"Pet": [0, 1], "Hound": [1]})


def test_a_map_that_names_none_of_the_data_is_refused() -> None:
    with pytest.raises(InputError, match="names none of the classes of pets: it has Stone, and the data Pet"):
        choose(data_of(("Pet",), [0]), MODEL, 5, class_map={"Stone": ["dog"]})


@given(st.integers(0, 2**16))
def test_scores_of_groups_are_their_maxima_whatever_the_groups(seed: int) -> None:
    generator = np.random.default_rng(seed)
    groups = [generator.choice(12, generator.integers(1, 5), replace=False) for _ in range(4)]
    logits = generator.normal(size=(6, 12)).astype(np.float32)
    choice = Choice(
        labels=("a", "b", "c", "d"),
        outputs=np.concatenate(groups),
        classes=np.repeat(np.arange(4), [len(group) for group in groups]),
        places=np.arange(4),
        num_outputs=12,
    )
    np.testing.assert_array_equal(_scores(logits, choice), np.stack([logits[:, group].max(1) for group in groups], 1))


def test_a_scored_model_answers_for_the_scored_classes() -> None:
    choice = choose(data_of(("gnu", "dog"), [0, 1]), MODEL, 5)
    logits = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    pixels = torch.from_numpy(pictures_of(3)).permute(0, 3, 1, 2)
    np.testing.assert_array_equal(Scored(FixedEngine(logits), choice)(pixels).numpy(), logits[:, [1, 4]])
