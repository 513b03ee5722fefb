import captum.attr
import torch

from tests.tiny import close, perturbed, vit_config
from vitrail import Preprocessing
from vitrail.analysis.cells import Cells, cells_for, mean_colour
from vitrail.analysis.methods import heat_maps, probabilities
from vitrail.analysis.occlusion import occlusion
from vitrail.runtime.engine import TorchEngine

CELLS = Cells(image_size=(6, 8), grid=(3, 4))


def test_occlusion_of_a_linear_model_is_its_weights() -> None:
    weight = torch.randn(5, 3, 6, 8).double()
    pixels = torch.randint(0, 256, (3, 6, 8), dtype=torch.uint8)
    maps = occlusion(
        lambda batch: torch.einsum("bchw,kchw->bk", batch.double(), weight),
        pixels,
        [4, 1],
        cells=CELLS,
        colour=(10, 20, 30),
        batch=5,
    )
    lost = weight[[4, 1]] * (pixels.double() - torch.tensor([10.0, 20.0, 30.0])[:, None, None])
    close(maps, torch.nn.functional.avg_pool2d(lost, 2).sum(dim=1) * 4, 1e-9)


def test_the_map_of_a_model_is_that_of_captum() -> None:
    config = vit_config()
    engine = TorchEngine(perturbed(config, by=0.3), Preprocessing(image_size=(12, 16), mean=(0.4,) * 3))
    pixels = torch.randint(0, 256, (2, 3, 12, 16), dtype=torch.uint8)
    classes = torch.tensor([2, 5])
    wanted = captum.attr.Occlusion(lambda batch: probabilities(engine, batch.to(torch.uint8))).attribute(
        pixels.double(), (3, 4, 4), strides=(3, 4, 4), target=classes, baselines=102
    )
    maps = heat_maps("occlusion", engine, pixels, classes).maps
    close(maps, wanted[:, 0, ::4, ::4], 1e-6)


def test_cells_are_patches_where_a_model_has_them_and_squares_elsewhere() -> None:
    assert cells_for(vit_config(), (12, 16)).grid == (3, 4)
    assert cells_for(vit_config(), (24, 32)).grid == (6, 8)
    assert [cells_for(None, size).grid for size in ((224, 224), (28, 28), (32, 64), (3, 2), (512, 128))] == [
        (14, 14),
        (7, 7),
        (7, 14),
        (3, 2),
        (14, 4),
    ]


def test_cells_cover_every_pixel_once_and_their_means_are_those_of_the_pixels() -> None:
    cells = Cells(image_size=(7, 5), grid=(3, 2))
    assert torch.bincount(cells.index.flatten()).tolist() == [9, 6, 6, 4, 6, 4]
    heat = torch.randn(2, 7, 5)
    close(cells.means(heat)[:, 0], heat[:, :3, :3].mean(dim=(1, 2)), 1e-6)
    close(cells.means(heat[:, :3, :2]), heat[:, :3, :2].flatten(1), 0)
    close(cells.means(torch.full((1, 2, 2), 3.0)), torch.full((1, 6), 3.0), 1e-6)


def test_covering_paints_only_the_cells_that_are_named() -> None:
    pixels = torch.randint(0, 100, (2, 3, 6, 8), dtype=torch.uint8)
    covered = torch.zeros(2, 12, dtype=torch.bool)
    covered[1, 5] = True  # row 1, column 1
    painted = CELLS.cover(pixels, covered, mean_colour(Preprocessing(mean=(0.5, 1.2, -1.0))))
    assert torch.equal(painted[0], pixels[0])
    assert painted[1, :, 2:4, 2:4].flatten(1).unique(dim=1).squeeze(1).tolist() == [128, 255, 0]
    painted[1, :, 2:4, 2:4] = pixels[1, :, 2:4, 2:4]
    assert torch.equal(painted, pixels)
