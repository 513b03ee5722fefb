from pathlib import Path

import numpy as np
import pytest

from tests.data.making import tree
from tests.training.making import CLASSES, made_dataset
from vitrail.evaluation.evaluation import described
from vitrail.runs.data import names_digest, open_run_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.evaluation import open_evaluation_data, trained_on


def _learned(where: object, *, fraction: float = 0.25, seed: int = 7, old: bool = False) -> dict[str, object]:
    """The provenance of a model, as a run on what lies there writes it, or wrote it before facts were kept apart."""
    evaluation = names_digest(open_run_data(DataConfig(where=str(where), val_fraction=fraction), seed=seed).evaluation)
    data = {"where": str(where), "val_fraction": fraction} | ({"held": evaluation} if old else {})
    return {"config": {"seed": seed, "data": data} | ({} if old else {"facts": {"held_digest": evaluation}})}


def _names(*splits: str) -> list[str]:
    return [f"{split}/{label}/{number}.png" for split in splits for label in ("a", "b") for number in range(4)]


@pytest.mark.parametrize(
    ("splits", "taken"),
    [(("train", "val", "test"), "test"), (("train", "val"), "val"), (("train", "test"), "test"), (("test",), "test")],
)
def test_the_split_that_training_never_saw_is_taken(splits: tuple[str, ...], taken: str, tmp_path: Path) -> None:
    dataset = open_evaluation_data(str(tree(tmp_path, _names(*splits))), split=None, provenance={})
    assert (dataset.split, len(dataset)) == (taken, 8)
    assert described(dataset) == f"the {taken} split of {tmp_path}"


def test_a_named_split_is_taken_by_any_of_its_names(tmp_path: Path) -> None:
    where = str(tree(tmp_path, _names("train", "val", "test")))
    assert open_evaluation_data(where, split="validation", provenance={}).split == "val"
    assert open_evaluation_data(where, split="train", provenance={}).split == "train"


def test_one_pile_is_everything_but_for_the_model_that_learned_from_it(tmp_path: Path) -> None:
    names = [f"{label}/{number}.png" for label in ("a", "b") for number in range(8)]
    where = str(tree(tmp_path / "photos", names))
    elsewhere = tree(tmp_path / "elsewhere", [f"{label}/z{number}.png" for label in ("a", "b") for number in range(8)])
    everything = open_evaluation_data(where, split=None, provenance=_learned(elsewhere))
    assert (everything.split, len(everything)) == (None, 16)
    assert described(everything) == f"all of {where}"
    evaluation = open_evaluation_data(where, split=None, provenance=_learned(f"{where}/../photos"))
    assert (evaluation.split, len(evaluation)) == ("val", 4)
    assert "is what the model learned from" in evaluation.notes[-1]
    rest = open_evaluation_data(where, split="train", provenance=_learned(where))
    assert not {evaluation.name(index) for index in range(4)} & {rest.name(index) for index in range(12)}
    learned = _learned(where)
    moved = (tmp_path / "photos").rename(tmp_path / "moved")
    assert len(open_evaluation_data(str(moved), split=None, provenance=learned)) == 4
    moved.rename(where)
    tree(tmp_path / "photos", ["a/0-new.png"])
    changed = open_evaluation_data(where, split=None, provenance=learned)
    assert (changed.split, len(changed)) == (None, 17)
    assert "has changed since the model learned from it" in changed.notes[-1]


def test_the_classes_are_those_of_every_split(tmp_path: Path) -> None:
    tree(tmp_path, [*_names("train", "test"), "test/c/1.png"])
    dataset = open_evaluation_data(str(tmp_path), split=None, provenance={})
    assert dataset.labels == ("a", "b", "c")
    assert dataset.counts.tolist() == [4, 4, 1]


def test_the_held_out_images_are_those_that_the_run_held_out(tmp_path: Path) -> None:
    data, path = made_dataset(30), tmp_path / "pile.npz"
    np.savez(path, images=data.pictures.images, labels=data.targets, class_names=np.array(CLASSES))  # type: ignore[attr-defined]
    import vitrail

    run = vitrail.data.open(path, split="val", val_fraction=0.25, seed=7)
    evaluation = open_evaluation_data(str(path), split=None, provenance=_learned(path), seed=99)
    np.testing.assert_array_equal(evaluation.rows, run.rows)


@pytest.mark.parametrize(
    "provenance",
    [
        {},
        {"config": None},
        {"config": {"data": []}},
        {"config": {"seed": 1, "data": {"where": 3, "val_fraction": 0.1, "held": "0"}}},
        {"config": {"seed": "1", "data": {"where": "photos", "val_fraction": 0.1, "held": "0"}}},
        {"config": {"seed": 1, "data": {"where": "photos", "val_fraction": 7.0, "held": "0"}}},
        {"config": {"seed": 1, "data": {"where": "photos", "val_fraction": 0.1}}},
    ],
)
def test_provenance_that_tells_of_no_such_run_is_none(provenance: dict[str, object]) -> None:
    assert trained_on(provenance) is None


def test_further_seeds_of_fine_tuning_held_out_the_images_of_the_first() -> None:
    data = {"where": "photos", "val_fraction": 0.25, "held": "0", "split_seed": 3}
    learned = trained_on({"config": {"seed": 4, "data": data}})
    assert learned is not None
    assert (learned.val_fraction, learned.seed) == (0.25, 3)
