import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitrail.data.stress.draws import Draws
from vitrail.data.stress.filters import high_pass, low_pass, without_texture
from vitrail.data.stress.tiles import partly_shuffled, rearrange, shuffled
from vitrail.data.stress.views import expose, rotate, zoom

DRAWS = Draws(seed=0, stress="shuffle", row=0)


def noise(channels: int = 3, height: int = 24, width: int = 32, seed: int = 0) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    return torch.from_numpy(generator.integers(0, 256, (channels, height, width), dtype=np.uint8))


def wave(cycles: int, side: int = 32) -> torch.Tensor:
    line = 128 + 100 * np.cos(2 * np.pi * cycles * (np.arange(side) + 0.5) / side)
    return torch.from_numpy(np.broadcast_to(np.rint(line), (1, side, side)).astype(np.uint8).copy())


def test_a_low_pass_keeps_slow_waves_and_flattens_fast_ones() -> None:
    """4 cycles in 32 pixels are a quarter of the highest frequency, 12 are three quarters."""
    slow, fast = wave(4), wave(12)
    assert (low_pass(slow, 0.5).int() - slow.int()).abs().max() <= 1
    assert (low_pass(fast, 0.5).int() - 128).abs().max() <= 2
    assert (high_pass(fast, 0.5).int() - fast.int()).abs().max() <= 2
    assert (high_pass(slow, 0.5).int() - 128).abs().max() <= 2


def test_filters_are_masks_of_the_fourier_transform() -> None:
    pixels = noise()
    waves = torch.fft.fft2(pixels.double())
    frequency = 2 * torch.hypot(torch.fft.fftfreq(24)[:, None], torch.fft.fftfreq(32)[None])
    low = torch.fft.ifft2(waves * (frequency <= 0.4)).real.clamp(0, 255).round()
    assert (low_pass(pixels, 0.4).double() - low).abs().max() <= 1e-9
    keep = (frequency >= 0.4) | (frequency == 0)
    high = torch.fft.ifft2(waves * keep).real.clamp(0, 255).round()
    assert (high_pass(pixels, 0.4).double() - high).abs().max() <= 1e-9
    assert torch.equal(low_pass(pixels, 1.5), pixels)
    assert torch.equal(high_pass(pixels, 0.0), pixels)


@pytest.mark.parametrize("radius", [1, 2, 4])
def test_texture_is_removed_as_kuwahara_says(radius) -> None:
    pixels = noise(3, 9, 11)
    image = pixels.numpy().astype(float)
    grey = np.rint(0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2])
    wide = np.pad(image, ((0, 0), (radius, radius), (radius, radius)), mode="symmetric")
    grey = np.pad(grey, radius, mode="symmetric")
    wanted = np.empty_like(image)
    for row in range(9):
        for column in range(11):
            squares = []
            for top in (row, row + radius):
                for left in (column, column + radius):
                    area = (slice(top, top + radius + 1), slice(left, left + radius + 1))
                    squares.append((grey[area].var(), wide[(slice(None), *area)].mean(axis=(1, 2))))
            wanted[:, row, column] = min(squares, key=lambda square: round(square[0], 6))[1]
    assert np.abs(without_texture(pixels, radius).numpy() - wanted).max() <= 0.5 + 1e-6


def test_a_sharp_edge_survives_the_removal_of_texture() -> None:
    scene = torch.zeros(1, 32, 32, dtype=torch.uint8)
    scene[:, :, 16:] = 200
    assert torch.equal(without_texture(scene, 4), scene)
    rough = (scene.int() + noise(1, 32, 32).int() % 20).to(torch.uint8)
    smooth = without_texture(rough, 4)
    assert smooth[:, :, :16].float().std() < 0.4 * rough[:, :, :16].float().std()
    assert (smooth[:, :, 16:].int() > 150).all()
    assert (smooth[:, :, :16].int() < 50).all()


@given(rows=st.integers(1, 5), columns=st.integers(1, 5), row=st.integers(0, 99))
def test_tiles_only_change_places(rows, columns, row) -> None:
    pixels = noise(2, 11, 13)
    order = shuffled(rows * columns, Draws(seed=0, stress="shuffle", row=row))
    moved = rearrange(pixels, (rows, columns), order)
    assert torch.equal(moved.flatten(1).sort().values, pixels.flatten(1).sort().values)
    assert torch.equal(rearrange(moved, (rows, columns), np.argsort(order)), pixels)
    tall, wide = 11 // rows, 13 // columns
    for place, tile in enumerate(order):
        at, source = divmod(place, columns), divmod(int(tile), columns)
        assert torch.equal(
            moved[:, at[0] * tall :][:, :tall, at[1] * wide :][:, :, :wide],
            pixels[:, source[0] * tall :][:, :tall, source[1] * wide :][:, :, :wide],
        )


def test_a_share_of_the_tiles_changes_places() -> None:
    assert (partly_shuffled(64, 0.0, DRAWS) == np.arange(64)).all()
    places = [set(np.flatnonzero(partly_shuffled(64, share, DRAWS) != np.arange(64))) for share in (0.25, 0.5, 1.0)]
    chosen = [set(DRAWS.permutation("moved", 64)[: round(share * 64)]) for share in (0.25, 0.5, 1.0)]
    for moved, allowed, count in zip(places, chosen, (16, 32, 64), strict=True):
        assert moved <= allowed
        assert len(moved) >= 0.7 * count
    for share in (0.25, 0.6, 1.0):
        assert sorted(partly_shuffled(64, share, DRAWS)) == list(range(64))


def test_a_quarter_turn_is_exact_and_others_go_the_same_way() -> None:
    square = noise(3, 16, 16)
    for quarter in range(4):
        assert torch.equal(rotate(square, 90.0 * quarter), torch.rot90(square, quarter, dims=(1, 2)))
    there = wave(2)
    back = rotate(rotate(there, 20.0), -20.0)
    assert (back.int() - there.int())[:, 8:-8, 8:-8].abs().float().mean() < 5


def test_zooming_and_exposing() -> None:
    pixels = noise()
    assert torch.equal(zoom(pixels, 1.0, (0, 0, 0)), pixels)
    flat = torch.full((3, 20, 20), 77, dtype=torch.uint8)
    assert torch.equal(zoom(flat, 2.0, (0, 0, 0)), flat)
    small = zoom(flat, 0.5, (1, 2, 3))
    assert (small == 77).sum() == 3 * 100
    assert small[:, 0, 0].tolist() == [1, 2, 3]
    wanted = np.rint(np.clip(pixels.numpy() * 1.5, 0, 255)).astype(np.uint8)
    assert np.array_equal(expose(pixels, 1.5).numpy(), wanted)
    assert torch.equal(expose(pixels, 1.0), pixels)
