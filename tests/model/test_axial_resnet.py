"""The ResNet of App. D.6 with attention along rows and columns in place of 3x3 convolutions."""

import numpy as np
import pytest
import torch

from tests.reference import transformer
from tests.tiny import arrays, axial_resnet_config, close, images_for, perturbed
from vitrail import CheckpointError, ConfigError, InputError, convert, create, load, save
from vitrail.model.axial_resnet import AxialPair


def attend(cells, w, axis, heads):
    """Attention of every cell along one axis, with relative positions, a line at a time."""
    lines = np.moveaxis(cells, axis, 1)  # batch, along the axis, across, channels
    mixed = np.empty_like(lines)
    for across in range(lines.shape[2]):
        mixed[:, :, across] = transformer.self_attention(
            lines[:, :, across],
            w["qkv.weight"].T,
            w["qkv.bias"],
            w["out.weight"].T,
            w["out.bias"],
            heads,
            w["offsets"],
        )[0]
    return np.moveaxis(mixed, 1, axis)


@pytest.mark.parametrize("size", [(4, 6), (5, 3)])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_pair_is_row_attention_then_column_attention_then_the_mean(size, stride) -> None:
    torch.manual_seed(0)
    pair = AxialPair(8, 2, size, stride).double().eval()
    for parameter in pair.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    features = torch.randn(2, 8, *size).double()
    cells = features.permute(0, 2, 3, 1).numpy()
    w = arrays(pair)
    rows, columns = (
        {k.removeprefix(f"{axis}."): v for k, v in w.items() if k.startswith(axis)} for axis in ("rows", "columns")
    )
    cells = attend(attend(cells, rows, 2, 2), columns, 1, 2)
    expected = np.stack(
        [
            [cells[:, top : top + stride, left : left + stride].mean(axis=(1, 2)) for left in range(0, size[1], stride)]
            for top in range(0, size[0], stride)
        ]
    )  # rows, columns, batch, channels
    close(pair(features), expected.transpose(2, 3, 0, 1), 1e-11)


def test_it_is_built_by_name_with_the_parameters_of_a_closed_form() -> None:
    model = create("Axial-R50x1", device="meta")
    count = sum(parameter.numel() for parameter in model.parameters())
    plain = sum(parameter.numel() for parameter in create("R50x1", device="meta").parameters())
    expected, side = plain, 56
    for stage, units in enumerate((3, 4, 6, 3)):
        width = 64 * 2**stage
        for unit in range(units):
            expected += 2 * (4 * width * width + 4 * width + (2 * side - 1) * width) - 9 * width * width
            side = side // 2 if stage > 0 and unit == 0 else side
    assert count == expected


def test_axial_vit_has_two_blocks_for_each_of_the_paper() -> None:
    config = create("Axial-B/16", device="meta").config
    assert (config.depth, config.mixer.kind, config.pool) == (24, "axial", "mean")
    block = 12 * 768**2 + 13 * 768  # q, k, v, out, two layers of the MLP; their biases and two norms
    count = sum(parameter.numel() for parameter in create("Axial-B/16", device="meta").parameters())
    assert count == 24 * block + 768 * 768 + 768 + 196 * 768 + 2 * 768 + 768 * 1000 + 1000


def test_a_file_holds_it_and_other_formats_refuse_it(tmp_path) -> None:
    model = perturbed(axial_resnet_config())
    path = save(model, tmp_path / "model.safetensors")
    images = images_for(model.config)
    assert torch.equal(load(path)(images), model(images))
    with pytest.raises(CheckpointError, match="a ResNet with axial attention"):
        convert(path, tmp_path / "out.npz", to="google")


def test_images_of_another_size_are_refused_and_a_file_moves_to_them(tmp_path) -> None:
    model = perturbed(axial_resnet_config())
    with pytest.raises(InputError, match="the model was made for 40x48"):
        model(torch.randn(1, 3, 48, 48))
    path = save(model, tmp_path / "model.safetensors")
    larger = load(path, image_size=(64, 64))
    assert larger.stages[0][0].conv2.rows.offsets.shape == (31, 8)
    assert larger(torch.randn(1, 3, 64, 64)).isfinite().all()
    old, new = model.stages[0][0].conv2.rows.offsets, larger.stages[0][0].conv2.rows.offsets
    close(new[[0, 15, 30]], old[[0, 11, 22]], 1e-6)  # 12 columns before, 16 after: the ends and the middle stay


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ConfigError, match="width 8 is not divisible by num_heads 3"):
        axial_resnet_config(num_heads=3)
