"""Eq. 1 in the native engine's program against torch's, and against the equation in NumPy."""

import numpy as np
import pytest
import torch

from tests.runtime.test_native_encoder import COMPILED
from tests.tiny import hybrid_config, perturbed, vit_config
from vitrail.runtime.native_embedding import NativeEmbedding
from vitrail.runtime.native_team import team_of

pytestmark = COMPILED
CONFIGS = {
    "class token": vit_config(),
    "no class token": vit_config(class_token=False, pool="mean"),
    "sine-cosine": vit_config(positions="sincos-2d", class_token=False, pool="mean"),
    "no positions": vit_config(positions="none"),
    "registers, distillation token": vit_config(registers=2, distillation_token=True, pool="distilled"),
    "norm before": vit_config(norm_embedded=True),
    "rectangles, grey": vit_config(image_size=(24, 40), patch_size=(4, 8), channels=1),
    "widths that fill no vector": vit_config(dim=35, num_heads=5),
}


def images_for(config, count: int) -> torch.Tensor:
    return torch.randn(count, config.channels, *config.image_size, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("name", CONFIGS)
def test_tokens_are_torchs_with_any_number_of_threads(name) -> None:
    config = CONFIGS[name]
    embedding = perturbed(config).embedding
    native = NativeEmbedding(embedding)
    images = images_for(config, 7)
    with torch.inference_mode():
        expected = embedding(images)
        for threads in (1, 2, 3, 50):
            with team_of(threads):
                tokens = native(images)
            torch.testing.assert_close(tokens, expected, atol=2e-6, rtol=1e-5)
        assert torch.equal(native(images.contiguous(memory_format=torch.channels_last)), tokens)
        assert torch.equal(native(images.mT.contiguous().mT), tokens)
        assert native(images[:0]).shape == expected[:0].shape


def test_tokens_are_those_of_equation_1() -> None:
    config = vit_config()
    model = perturbed(config)
    image = images_for(config, 1)
    with torch.inference_mode():
        tokens = NativeEmbedding(model.embedding)(image)[0].double().numpy()
    kernel, bias, token, table = (
        part.detach().double().numpy()
        for part in (
            model.embedding.projection.weight,
            model.embedding.projection.bias,
            model.embedding.class_token,
            model.embedding.positions(),
        )
    )
    (rows, columns), (height, width) = config.grid, config.patch_size
    patches = [
        image[0, :, row * height : (row + 1) * height, column * width : (column + 1) * width].double().numpy().ravel()
        for row in range(rows)
        for column in range(columns)
    ]
    np.testing.assert_allclose(tokens, np.concatenate([token, np.array(patches) @ kernel.T + bias]) + table, atol=1e-5)


def test_images_of_another_size_get_positions_between() -> None:
    embedding = perturbed(vit_config()).embedding
    images = torch.randn(2, 3, 48, 40, generator=torch.Generator().manual_seed(6))
    with torch.inference_mode():
        torch.testing.assert_close(NativeEmbedding(embedding)(images), embedding(images), atol=2e-6, rtol=1e-5)


def test_the_cells_of_a_hybrid_are_patches_too() -> None:
    model = perturbed(hybrid_config())
    with torch.inference_mode():
        features = model.backbone(images_for(model.config, 2))
        torch.testing.assert_close(
            NativeEmbedding(model.embedding)(features), model.embedding(features), atol=1e-4, rtol=1e-4
        )


def test_patches_that_are_left_out_or_exchanged_are_torchs() -> None:
    config = vit_config()
    embedding = perturbed(config).embedding
    images, kept = images_for(config, 2), torch.tensor([[0, 3], [2, 1]])
    with torch.inference_mode():
        assert torch.equal(NativeEmbedding(embedding)(images, kept=kept), embedding(images, kept=kept))
