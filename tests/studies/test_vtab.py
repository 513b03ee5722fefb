"""VTAB-1k: Table 9 typed a second time, task by task, and the rule by which tasks are found and run."""

from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.data.test_vtab import TEST, WHOLE, task
from vitrail.base.errors import InputError
from vitrail.base.ranks import Ranks
from vitrail.recipes.results import TABLE_9, VTAB_GROUPS
from vitrail.runs.changes import Changes
from vitrail.runs.start import Source, open_source
from vitrail.studies.vtab import task_data, task_run
from vitrail.studies.vtab_result import summarise
from vitrail.studies.vtab_tasks import TASKS, find_tasks, task_named

ROWS = """
caltech101            95.3  95.4  90.8
cifar                 85.5  81.9  84.1
dtd                   75.2  74.3  74.1
oxford_flowers102     99.7  99.7  99.3
oxford_iiit_pet       97.2  96.7  92.7
sun397                65.0  63.5  61.0
svhn                  88.9  87.4  80.9
patch_camelyon        83.3  83.6  82.5
eurosat               96.7  96.5  95.6
resisc45              91.4  89.7  85.2
diabetic_retinopathy  76.6  77.1  75.3
clevr_count           91.7  86.4  70.3
clevr_dist            63.8  63.1  56.1
dmlab                 53.1  49.7  41.9
dsprites_loc          79.4  74.5  74.7
dsprites_ori          63.3  60.5  64.9
kitti                 84.5  82.2  79.9
smallnorb_azi         33.2  36.2  30.5
smallnorb_ele         51.2  51.1  41.7
"""
TYPED = {row.split()[0]: tuple(map(float, row.split()[1:])) for row in ROWS.strip().splitlines()}


def test_table_9_has_every_number_of_the_paper() -> None:
    assert {task: tuple(column[task] for column in TABLE_9.values()) for task in TASKS} == TYPED
    assert tuple(TYPED) == TASKS


@pytest.mark.parametrize(("name", "mean"), [("H/14 JFT", 77.63), ("L/16 JFT", 76.28), ("L/16 I21k", 72.72)])
def test_the_mean_over_19_tasks_is_the_score_of_table_2(name: str, mean: float) -> None:
    means = summarise(TABLE_9[name])
    assert means.complete
    assert means.overall == pytest.approx(mean, abs=0.05)  # the tasks are rounded to a tenth


def test_groups_have_7_4_and_8_tasks() -> None:
    assert {group: len(tasks) for group, tasks in VTAB_GROUPS.items()} == {
        "natural": 7,
        "specialized": 4,
        "structured": 8,
    }


def test_means_are_numpys_and_count_their_tasks() -> None:
    accuracies = {"dtd": 0.5, "svhn": 0.8, "kitti": 0.3}
    means = summarise(accuracies)
    assert means.overall == pytest.approx(np.mean([0.5, 0.8, 0.3]))
    assert means.groups == pytest.approx({"natural": 0.65, "structured": 0.3})
    assert (means.tasks, means.complete) == (3, False)


@pytest.mark.parametrize(
    ("folder", "task"),
    [
        *((task, task) for task in TASKS),
        ("cifar100", "cifar"),
        ("CIFAR-100", "cifar"),
        ("pets", "oxford_iiit_pet"),
        ("Flowers", "oxford_flowers102"),
        ("sNORB-Azim", "smallnorb_azi"),
        ("KITTI-Dist", "kitti"),
        ("dSpr-Loc", "dsprites_loc"),
        ("Clevr-Count", "clevr_count"),
        ("Retinopathy", "diabetic_retinopathy"),
        ("imagenet", None),
    ],
)
def test_tasks_are_known_by_their_usual_names(folder: str, task: str | None) -> None:
    assert task_named(folder) == task


def test_the_tasks_that_are_there_are_found_in_the_order_of_the_table(tmp_path: Path) -> None:
    for name in ("svhn", "pets", "KITTI"):
        task(tmp_path / name, {"train800val200.txt": WHOLE, "test.txt": TEST})
    (tmp_path / "dtd").mkdir()  # without lists
    (tmp_path / "notes").mkdir()
    assert {name: path.name for name, path in find_tasks(tmp_path).items()} == {
        "oxford_iiit_pet": "pets",
        "svhn": "svhn",
        "kitti": "KITTI",
    }
    assert list(find_tasks(tmp_path, ["kitti", "pets"])) == ["oxford_iiit_pet", "kitti"]
    with pytest.raises(InputError, match=r"no folder of the task dtd; there are kitti, oxford_iiit_pet, svhn"):
        find_tasks(tmp_path, ["dtd"])
    with pytest.raises(InputError, match=r"'svnh' is not a task .*Did you mean svhn"):
        find_tasks(tmp_path, ["svnh"])
    task(tmp_path / "oxford_pets", {"train800val200.txt": WHOLE, "test.txt": TEST})
    with pytest.raises(InputError, match="are both the task oxford_iiit_pet"):
        find_tasks(tmp_path)


def test_a_root_without_tasks_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no task of VTAB-1k"):
        find_tasks(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        find_tasks(tmp_path / "nowhere")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    model = vitrail.create("S/16", image_size=64, num_classes=9, dim=24, num_heads=2, mlp_dim=32, depth=1, seed=0)
    return open_source(str(vitrail.save(model, tmp_path / "model.safetensors")))


def test_a_task_is_run_by_its_row_of_table_4(source: Source, tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": WHOLE, "test.txt": TEST})
    (folder / "train800val200.txt").write_text("".join(f"{line}\n" for line in WHOLE * 200))
    data = task_data(folder)
    run = task_run(source, data, tmp_path / "out", Ranks(), changes=Changes())
    config = run.config
    assert (config.steps, config.batch, config.preprocessing.image_size) == (2_500, 512, (384, 384))
    assert (config.schedule.shape, config.schedule.peak) == ("cosine", 0.01)
    assert (config.optimizer.name, config.optimizer.beta1, config.optimizer.weight_decay) == ("sgd", 0.9, 0)
    assert config.optimizer.clip_norm == 1
    assert config.preprocessing.geometry == "square"
    assert (config.augmentation.crop, config.augmentation.flip) == ("none", 0)  # labels tell of places and directions
    assert config.evaluate_every == 2_500
    assert config.model.num_classes == 4
    assert len(run.data.train) == 1_200
    assert run.data.evaluation is not None
    assert run.data.evaluation.split == "test"


def test_any_setting_can_be_changed(source: Source, tmp_path: Path) -> None:
    data = task_data(task(tmp_path / "dtd", {"train800val200.txt": WHOLE, "test.txt": TEST}))
    changes = Changes(batch=6, learning_rate=0.5, seed=3)
    config = task_run(source, data, tmp_path / "out", Ranks(), image_size=(32, 32), steps=4, changes=changes).config
    assert (config.steps, config.batch, config.schedule.peak, config.seed) == (4, 6, 0.5, 3)
    assert config.preprocessing.image_size == config.model.image_size == (32, 32)
    with pytest.raises(InputError, match="a batch of 512 is more than the 6 training images"):
        task_run(source, data, tmp_path / "out", Ranks(), changes=Changes())


def test_a_task_of_one_class_is_refused(tmp_path: Path) -> None:
    folder = task(tmp_path / "dtd", {"train800val200.txt": ["images/1.png 0"], "test.txt": ["images/2.png 0"]})
    with pytest.raises(InputError, match="only one class"):
        task_data(folder)
