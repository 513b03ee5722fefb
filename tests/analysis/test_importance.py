import pytest
import torch

from tests.tiny import LATER, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail.analysis.importance import feature_change, measure_branches, probability_change, without

CONFIGS = [vit_config(), hybrid_config(), resnet_config(), vit_config(**LATER["DINOv2 giant"])]


@pytest.mark.parametrize("config", CONFIGS)
@torch.no_grad()
def test_a_model_without_a_branch_is_itself_again_afterwards(config) -> None:
    model, images = perturbed(config, by=0.3), images_for(config)
    before, weights = model(images), {name: value.clone() for name, value in model.state_dict().items()}
    for branch in model.branches():
        with without(model, branch):
            assert not torch.equal(model(images), before), branch.name
    with pytest.raises(RuntimeError, match="stop"), without(model, model.branches()[0]):
        raise RuntimeError("stop")
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


@torch.no_grad()
def test_without_both_branches_of_a_block_tokens_pass_it_unchanged() -> None:
    model, images = perturbed(vit_config()), images_for(vit_config())
    attention, mlp = (branch for branch in model.branches() if branch.layer == 1 and branch.head is None)
    with without(model, attention), without(model, mlp):
        trace = model.trace(images)
        assert torch.equal(trace.blocks[1], trace.blocks[0])


@torch.no_grad()
def test_without_all_heads_only_the_bias_is_left_and_one_head_is_its_own_part() -> None:
    model, images = perturbed(vit_config()), images_for(vit_config())
    block = model.encoder.blocks[0]
    tokens = block.norm1(model.trace(images).embedded)
    whole = block.attention(tokens) - block.attention.out.bias
    parts = torch.zeros_like(whole)
    for head in [branch for branch in model.branches() if branch.layer == 0 and branch.head is not None]:
        with without(model, head):
            parts += whole - (block.attention(tokens) - block.attention.out.bias)
    torch.testing.assert_close(parts, whole)


@torch.no_grad()
def test_a_unit_of_a_resnet_that_is_left_out_passes_its_shortcut() -> None:
    for config, unit in ((resnet_config(), "stages.1.1"), (hybrid_config(), "backbone.stages.1.1")):
        model = perturbed(config)
        (branch,) = [branch for branch in model.branches() if branch.name == "stage 1, unit 1"]
        module = model.get_submodule(unit)
        features = torch.randn(2, 64, 5, 6).relu()
        with without(model, branch):
            torch.testing.assert_close(module(features), features)


def test_changes_have_their_bounds() -> None:
    sure, other = torch.tensor([[1.0, 0, 0]]), torch.tensor([[0.0, 1, 0]])
    assert probability_change(sure, sure) == 0
    assert probability_change(sure, other) == 1
    assert feature_change(sure, 5 * sure) == pytest.approx(0)
    assert feature_change(sure, -sure) == pytest.approx(2)


def test_a_branch_that_does_nothing_changes_nothing() -> None:
    model, images = perturbed(vit_config()), images_for(vit_config())
    with torch.no_grad():
        model.encoder.blocks[0].mlp.out.weight.zero_()
        model.encoder.blocks[0].mlp.out.bias.zero_()

    def outputs() -> torch.Tensor:
        with torch.no_grad():
            return model(images).softmax(dim=1)

    figures = measure_branches(model, outputs, change=probability_change, accuracy=lambda found: float(found[0, 0]))
    changes = {figure.branch.name: figure.change for figure in figures}
    assert changes["block 0, MLP"] == 0
    assert sum(change > 0 for change in changes.values()) == len(changes) - 1
    assert {figure.accuracy for figure in figures if figure.branch.name == "block 0, MLP"} == {float(outputs()[0, 0])}
