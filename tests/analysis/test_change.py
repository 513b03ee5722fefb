import copy

import pytest
import torch

from tests.tiny import perturbed, resnet_config, vit_config
from vitrail.analysis.change import weight_changes


def test_a_scaled_layer_changed_by_its_factor_and_the_others_not_at_all() -> None:
    before = perturbed(vit_config())
    after = copy.deepcopy(before)
    with torch.no_grad():
        for parameter in after.encoder.blocks[1].parameters():
            parameter.mul_(1.25)
    changes, unmatched = weight_changes(before, after)
    assert {change.layer: round(change.change, 6) for change in changes} == {
        "embedding": 0,
        "block 0": 0,
        "block 1": 0.25,
        "head": 0,
    }
    assert unmatched == []


def test_weights_without_anything_in_common_are_a_square_root_of_two_apart() -> None:
    large = {"dim": 256, "mlp_dim": 512}
    changes, _ = weight_changes(perturbed(vit_config(**large), by=5), perturbed(vit_config(**large), seed=7, by=5))
    assert next(change for change in changes if change.layer == "block 0").change == pytest.approx(2**0.5, abs=0.02)


def test_another_head_is_left_out_and_another_kind_has_nothing_to_compare() -> None:
    ours = perturbed(vit_config())
    changes, unmatched = weight_changes(ours, perturbed(vit_config(num_classes=3)))
    assert unmatched == ["head.linear.bias", "head.linear.weight"]
    assert [change.layer for change in changes] == ["embedding", "block 0", "block 1", "head"]
    assert weight_changes(ours, perturbed(resnet_config()))[0] == []
