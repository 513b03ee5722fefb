import pytest

from vitrail.base.errors import InputError
from vitrail.evaluation.names import Labels, are_numbers

IMAGENET = Labels(
    (
        "n01440764 tench, Tinca tinca",
        "great white shark, white shark",
        "crane",
        "drake",
        "crane, machine",
        "T-shirt/top",
    )
)


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("n01440764", [0]),
        ("Tench", [0]),
        ("tinca_tinca", [0]),
        ("great white shark, white shark", [1]),
        ("White-Shark", [1]),
        ("great__white  shark", [1]),
        ("crane", [2]),  # as it is comes first
        ("Crane", [2]),  # then the whole label in another spelling
        ("machine", [4]),
        ("t_shirt/TOP", [5]),
        ("dog", []),
        ("", []),
    ],
)
def test_a_name_is_found_in_any_spelling_that_the_label_gives(name: str, classes: list[int]) -> None:
    assert IMAGENET.find(name) == classes


def test_a_name_that_two_labels_have_is_refused_with_their_numbers() -> None:
    with pytest.raises(InputError, match=r"crane \(1 or 2\); .*`class_map`"):
        Labels(("dog", "crane", "crane")).match(("dog", "crane"), where="birds")


def test_two_names_of_one_class_are_refused() -> None:
    with pytest.raises(InputError, match="the classes Dog and dog, which are both dog in the model"):
        Labels(("cat", "dog")).match(("Dog", "dog"), where="pets")


def test_unknown_names_match_none() -> None:
    assert Labels(("cat", "dog")).match(("dog", "emu", "Cat"), where="pets") == [1, None, 0]


def test_whole_numbers_in_order_are_distinguished_from_other_names() -> None:
    assert are_numbers(("0", "1", "2"))
    assert not are_numbers(("1", "2"))
    assert not are_numbers(("0", "one"))
    assert not are_numbers(())
