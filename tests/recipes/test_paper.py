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
    assert set(paper.FINETUNING_STEPS.values()) == {20_000, 10_000, 500, 2_500}
    assert (paper.PRETRAINING_BATCH, paper.FINETUNING_BATCH, paper.FINETUNING_SIZE) == (4096, 512, 384)


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
    with pytest.raises(ConfigError, match=r"does not pre-train H/14 on ImageNet-21k, only B/16, B/32.*--epochs"):
        paper.pretraining_epochs("H/14", "imagenet21k")
