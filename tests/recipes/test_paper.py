"""The paper's tables, typed a second time: model, data, epochs, rate, decay, weight decay, dropout."""

import pytest

from vitrail import ConfigError, configure
from vitrail.recipes import paper

TABLE_3 = """
B/16 B/32         jft300m     7     8e-4 linear 0.1  0
L/32              jft300m     7     6e-4 linear 0.1  0
L/16              jft300m     7,14  4e-4 linear 0.1  0
H/14              jft300m     14    3e-4 linear 0.1  0
R50x1 R50x2       jft300m     7     1e-3 linear 0.1  0
R101x1            jft300m     7     8e-4 linear 0.1  0
R152x1 R152x2     jft300m     7     6e-4 linear 0.1  0
R50+B/16 R50+B/32 jft300m     7     8e-4 linear 0.1  0
R50+L/32          jft300m     7     2e-4 linear 0.1  0
R50+L/16          jft300m     7,14  4e-4 linear 0.1  0
B/16 B/32         imagenet21k 90    1e-3 linear 0.03 0.1
L/16 L/32         imagenet21k 30,90 1e-3 linear 0.03 0.1
"""
TABLE_6 = {
    "B/32": {7: 55},
    "B/16": {7: 224},
    "L/32": {7: 196},
    "L/16": {7: 783, 14: 1567},
    "H/14": {14: 4262},
    "R50x1": {7: 50},
    "R50x2": {7: 199},
    "R101x1": {7: 96},
    "R152x1": {7: 141},
    "R152x2": {7: 563, 14: 1126},
    "R200x3": {14: 3306},
    "R50+B/32": {7: 106},
    "R50+B/16": {7: 274},
    "R50+L/32": {7: 246},
    "R50+L/16": {7: 859, 14: 1668},
}


@pytest.mark.parametrize("line", TABLE_3.strip().splitlines())
def test_every_row_of_table_3_is_there(line) -> None:
    *models, data, epochs, rate, decay, weight_decay, dropout = line.split()
    [row] = [row for row in paper.TABLE_3 if set(row.models) == set(models) and row.data == data]
    assert row.epochs == tuple(map(int, epochs.split(",")))
    assert row.learning_rate == float(rate)
    assert row.decay == decay
    assert row.weight_decay == float(weight_decay)
    assert row.dropout == float(dropout)


def test_every_vision_transformer_trains_on_imagenet_alike() -> None:
    [row] = [row for row in paper.TABLE_3 if row.data == "imagenet1k"]
    assert set(row.models) == {"B/16", "B/32", "L/16", "L/32", "H/14"}
    assert (row.epochs, row.learning_rate, row.decay) == ((300,), 3e-3, "cosine")
    assert (row.weight_decay, row.dropout) == (0.3, 0.1)


def test_table_3_has_no_other_rows() -> None:
    assert len(paper.TABLE_3) == len(TABLE_3.strip().splitlines()) + 1


def test_table_6_is_there() -> None:
    assert {(name, epochs): cost for name, runs in TABLE_6.items() for epochs, cost in runs.items()} == paper.EXAFLOPS


def test_tables_2_and_4_are_there() -> None:
    assert paper.CORE_DAYS == {
        ("H/14", "jft300m"): 2500,
        ("L/16", "jft300m"): 680,
        ("L/16", "imagenet21k"): 230,
    }
    assert paper.FINETUNING_STEPS == {
        "finetune-imagenet": 20_000,
        "finetune-cifar10": 10_000,
        "finetune-cifar100": 10_000,
        "finetune-pets": 500,
        "finetune-flowers": 500,
        "finetune-vtab": 2_500,
    }
    classes = {row.name.removeprefix("finetune-"): row.num_classes for row in paper.TABLE_4}
    del classes["vtab"]  # its tasks have different classes
    assert classes == {"imagenet": 1000, "cifar10": 10, "cifar100": 100, "pets": 37, "flowers": 102}
    assert (paper.PRETRAINING_BATCH, paper.FINETUNING_BATCH, paper.FINETUNING_SIZE) == (4096, 512, 384)


def test_the_data_sets_have_the_published_sizes() -> None:
    sizes = {name: (data.images, data.num_classes) for name, data in paper.DATASETS.items()}
    assert sizes["imagenet1k"] == (1_281_167, 1000)
    assert sizes["imagenet21k"] == (14_197_122, 21_843)
    assert (sizes["jft300m"][0], round(sizes["jft300m"][1], -3)) == (303_000_000, 18_000)


# ImageNet top-1 of Table 6 after pre-training on JFT-300M, and what the authors released of the other data sets.
PUBLISHED = {
    "jft300m": "B/32:7 80.73 B/16:7 84.15 L/32:7 84.37 L/16:7 86.30 L/16:14 87.12 H/14:14 88.08 R50x1:7 77.54 "
    "R50x2:7 82.12 R101x1:7 80.67 R152x1:7 81.88 R152x2:7 84.97 R50+B/32:7 84.90 R50+B/16:7 85.58 R50+L/32:7 85.68 "
    "R50+L/16:7 86.60 R50+L/16:14 87.12",
    "imagenet21k": "B/16:90 47.88 B/32:90 44.04 L/16:90 49.90 L/32:90 45.42",
    "imagenet1k": "B/32:300 69.19 B/16:300 74.79 L/32:300 66.90 L/16:300 72.59",
}


def test_what_was_published_of_pretraining_is_there() -> None:
    typed = {}
    for data, line in PUBLISHED.items():
        words = line.split()
        for run, accuracy in zip(words[::2], words[1::2], strict=True):
            model, _, epochs = run.partition(":")
            typed[model, data, int(epochs)] = accuracy
    assert {run: result.partition("%")[0] for run, result in paper.SCRATCH_RESULTS.items()} == typed


def test_every_model_of_the_tables_can_be_made() -> None:
    names = {name for row in paper.TABLE_3 for name in row.models} | {name for name, _ in paper.EXAFLOPS}
    assert all(configure(name) for name in names)


@pytest.mark.parametrize(
    ("model", "data", "epochs"),
    [("L/16", "jft300m", 14), ("R200x3", "jft300m", 14), ("L/32", "imagenet21k", 90), ("B/16", "imagenet1k", 300)],
)
def test_the_longest_run_of_the_paper_is_taken(model, data, epochs) -> None:
    assert paper.pretraining_epochs(model, data) == epochs


def test_a_run_that_is_not_in_the_paper_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"does not pre-train H/14 on ImageNet-21k, only B/16, B/32.*`epochs`"):
        paper.pretraining_epochs("H/14", "imagenet21k")
