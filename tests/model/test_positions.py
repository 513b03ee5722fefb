import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.reference import positions as reference
from tests.tiny import close
from vitrail import ConfigError
from vitrail.model.positions import make_positions, resize_axis, resize_positions, resize_relative, sincos_2d

WAYS = ["google", "timm", "timm-npz", "huggingface", "torchvision"]
side = st.integers(1, 6)


@given(rows=side, columns=side, extra=st.integers(0, 1), way=st.sampled_from(WAYS))
def test_resizing_to_the_same_grid_changes_nothing(rows, columns, extra, way) -> None:
    table = torch.randn(rows * columns + extra, 3)
    assert torch.equal(resize_positions(table, (rows, columns), (rows, columns), way=way), table)


@given(rows=side, columns=side, extra=st.integers(0, 1))
def test_resizing_offsets_to_the_same_grid_changes_nothing(rows, columns, extra) -> None:
    table = torch.randn(2 * (rows * columns + extra) - 1, 3)
    assert torch.equal(resize_relative(table, (rows, columns), (rows, columns)), table)


@given(old=st.tuples(side, side), new=st.tuples(side, side), extra=st.integers(0, 1))
def test_the_google_way_is_bilinear_with_aligned_corners(old, new, extra) -> None:
    table = torch.randn(old[0] * old[1] + extra, 3)
    resized = resize_positions(table, old, new, way="google")
    assert torch.equal(resized[:extra], table[:extra])
    close(resized[extra:], reference.resize_align_corners(table[extra:].double().numpy(), old, new), 1e-5)


@given(old=st.tuples(side, side), new=st.tuples(side, side), way=st.sampled_from(WAYS))
def test_a_constant_table_stays_constant(old, new, way) -> None:
    table = torch.full((old[0] * old[1], 2), 1.5)
    close(resize_positions(table, old, new, way=way), torch.full((new[0] * new[1], 2), 1.5), 1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_resizing_keeps_the_type(way) -> None:
    table = torch.randn(17, 4).bfloat16()
    resized = resize_positions(table, (4, 4), (3, 5), way=way)
    assert resized.dtype == torch.bfloat16
    assert resized.shape == (16, 4)


@pytest.mark.parametrize("new", [3, 8])
def test_an_axis_is_interpolated_on_its_own(new) -> None:
    table = torch.randn(5, 4)
    expected = reference.resize_align_corners(table.double().numpy(), (5, 1), (new, 1))
    close(resize_axis(table, new), expected, 1e-5)


@pytest.mark.parametrize(("old", "new"), [((4, 4), (8, 8)), ((4, 6), (3, 5)), ((2, 3), (5, 7))])
@pytest.mark.parametrize("extra", [0, 1])
def test_an_offset_embedding_that_is_linear_in_the_displacement_stays_so(old, new, extra) -> None:
    """Where the four neighbours exist, bilinear interpolation of a linear function is exact."""
    reach = old[0] * old[1] + extra - 1
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float32)
    resized = resize_relative(offsets[:, None], old, new)
    new_reach = new[0] * new[1] + extra - 1
    assert len(resized) == 2 * new_reach + 1
    for offset in range(-new_reach, new_reach + 1):
        row = round(offset / new[1])
        y, x = row * old[0] / new[0], (offset - row * new[1]) * old[1] / new[1]
        expected = y * old[1] + x  # the value of the embedding at that displacement
        if abs(y) + 1 <= old[0] - 1:
            assert resized[offset + new_reach].item() == pytest.approx(expected, abs=1e-4)


def test_the_offset_of_a_token_to_itself_keeps_its_embedding() -> None:
    table = torch.randn(2 * 17 - 1, 3)
    close(resize_relative(table, (4, 4), (6, 5))[30], table[16], 0)


@pytest.mark.parametrize("class_entry", [False, True])
def test_a_2d_table_joins_the_column_and_the_row(class_entry) -> None:
    module = make_positions("learned-2d", 6, (2, 3), class_entry=class_entry)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    table = module()
    assert table.shape == (6 + class_entry, 6)
    close(table[int(class_entry) :], reference.learned_2d(module.x.detach().numpy(), module.y.detach().numpy()), 0)
    if class_entry:
        close(table[:1], module.class_entry, 0)


@pytest.mark.parametrize("grid", [(3, 4), (1, 5)])
def test_the_fixed_table_holds_sines_and_cosines(grid) -> None:
    table = sincos_2d(16, grid, class_entry=True)
    assert not table[0].any()
    close(table[1:], reference.sincos_2d(16, grid), 1e-6)
    close(sincos_2d(16, grid, class_entry=False), table[1:], 0)


@pytest.mark.parametrize(("class_entry", "rows"), [(False, 6), (True, 7)])
def test_a_1d_table_has_a_row_for_each_token(class_entry, rows) -> None:
    module = make_positions("learned-1d", 8, (2, 3), class_entry=class_entry)
    assert module().shape == (rows, 8)
    assert [name for name, _ in module.named_parameters()] == ["table"]


@pytest.mark.parametrize("kind", ["none", "relative"])
def test_kinds_that_add_nothing_to_tokens_have_no_table(kind) -> None:
    assert make_positions(kind, 8, (2, 3), class_entry=True) is None


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_way_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'googel'.*google, timm.*Did you mean google"):
        resize_positions(torch.zeros(4, 2), (2, 2), (3, 3), way="googel")


@pytest.mark.parametrize("rows", [3, 6, 18])
def test_a_table_of_another_grid_is_refused(rows) -> None:
    with pytest.raises(ConfigError, match=rf"{rows} positions.*2x2.*4 or, with a class entry, 5.*own grid"):
        resize_positions(torch.zeros(rows, 2), (2, 2), (3, 3))


@pytest.mark.parametrize("rows", [4, 8, 11])
def test_offsets_of_another_grid_are_refused(rows) -> None:
    with pytest.raises(ConfigError, match=rf"{rows} offsets.*2x2.*7 or, with a class token, 9"):
        resize_relative(torch.zeros(rows, 2), (2, 2), (3, 3))
