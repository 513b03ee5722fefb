import torch
import torch.nn.functional as F

from tests.tiny import hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail.analysis.units import dead_units, unit_peaks


def test_units_that_never_speak_are_counted() -> None:
    hidden = torch.randn(3, 5, 20).relu()
    hidden[..., [2, 7, 19]] = 0
    assert dead_units(*unit_peaks(hidden)) == 3
    assert dead_units(*unit_peaks(torch.zeros(3, 5, 4))) == 4
    never = F.gelu(torch.full((3, 5, 20), -9.0))
    never[..., :15] = 1.0
    assert dead_units(*unit_peaks(never)) == 5


def test_killed_units_of_a_model_are_found_in_their_block() -> None:
    model = perturbed(vit_config())
    with torch.no_grad():
        model.encoder.blocks[1].mlp.hidden.weight[:9] = 0
        model.encoder.blocks[1].mlp.hidden.bias[:9] = -30
    found = model.encode(images_for(model.config), units=unit_peaks).units
    assert {name: dead_units(*peaks) for name, peaks in found.items()} == {"block 0": 0, "block 1": 9}


def test_hidden_activations_are_the_input_of_a_branch_s_last_product() -> None:
    config = vit_config()
    model = perturbed(config)
    images = images_for(config)
    trace = model.trace(images)
    found = model.encode(images, units=lambda hidden: hidden).units
    block = model.encoder.blocks[0]
    middle = trace.embedded + block.attention(block.norm1(trace.embedded))
    kept = middle + block.mlp.out(found["block 0"])
    torch.testing.assert_close(kept, trace.blocks[0])
    for convolutional, names in ((resnet_config(), 3), (hybrid_config(), 5)):
        units = perturbed(convolutional).encode(images_for(convolutional), units=unit_peaks).units
        assert len(units) == names
        assert units["stages.1.0"].shape == (2, 16)
