import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import transformer
from tests.tiny import close
from vitrail import ConfigError
from vitrail.model.patches import patch_grid, patchify, size_text, unpatchify

small = st.integers(1, 4)


@given(batch=small, channels=small, rows=small, columns=small, height=small, width=small)
def test_unpatchify_undoes_patchify(batch, channels, rows, columns, height, width) -> None:
    images = torch.randn(batch, channels, rows * height, columns * width)
    patches = patchify(images, (height, width))
    assert patches.shape == (batch, rows * columns, channels * height * width)
    assert torch.equal(unpatchify(patches, (height, width), (rows, columns)), images)


@given(batch=small, channels=small, rows=small, columns=small, height=small, width=small)
def test_patchify_undoes_unpatchify(batch, channels, rows, columns, height, width) -> None:
    patches = torch.randn(batch, rows * columns, channels * height * width)
    assert torch.equal(patchify(unpatchify(patches, (height, width), (rows, columns)), (height, width)), patches)


@pytest.mark.parametrize("patch_size", [(2, 2), (3, 2), (6, 8), (1, 1)])
def test_patches_are_cut_as_in_the_paper(patch_size) -> None:
    images = np.random.default_rng(0).normal(size=(2, 3, 6, 8))
    close(patchify(torch.tensor(images), patch_size), transformer.patchify(images, patch_size), 0)


def test_a_matrix_product_of_patches_is_a_strided_convolution() -> None:
    images, kernel = torch.randn(2, 3, 8, 12).double(), torch.randn(5, 3, 4, 6).double()
    convolved = torch.nn.functional.conv2d(images, kernel, stride=(4, 6)).flatten(2).mT
    close(patchify(images, (4, 6)) @ kernel.flatten(1).T, convolved, 1e-12)


@pytest.mark.parametrize(
    ("image_size", "patch_size", "grid"),
    [((224, 224), (16, 16), (14, 14)), ((384, 224), (32, 16), (12, 14)), ((14, 28), (14, 14), (1, 2))],
)
def test_the_grid_counts_rows_and_columns(image_size, patch_size, grid) -> None:
    assert patch_grid(image_size, patch_size) == grid


@pytest.mark.parametrize(
    ("image_size", "patch_size", "sizes", "remedy"),
    [
        ((225, 224), (16, 16), "16x16 does not divide the image size 225x224", "resize to 224x224"),
        ((224, 230), (16, 16), "224x230", "resize to 224x224"),
        ((8, 224), (16, 16), "8x224", "resize to 16x224"),
    ],
)
def test_a_patch_that_does_not_divide_the_image_is_refused_with_a_size_that_fits(
    image_size, patch_size, sizes, remedy
) -> None:
    with pytest.raises(ConfigError) as error:
        patch_grid(image_size, patch_size)
    assert sizes in str(error.value)
    assert remedy in str(error.value)


def test_sizes_are_written_with_an_x() -> None:
    assert size_text((384, 224)) == "384x224"
