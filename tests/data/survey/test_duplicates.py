import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from tests.data.pictures import encoded, photo
from vitrail.data.pixels.decode import decode
from vitrail.data.survey import duplicates
from vitrail.data.survey.duplicates import MIRROR, Prints, fingerprint, near_duplicates

SCENES = 150
CHANGES = {
    "saved as JPEG of quality 60": lambda image: _jpeg(image, 60),
    "half the size": lambda image: image.resize((image.width // 2, image.height // 2), Image.Resampling.BICUBIC),
    "twice the size": lambda image: image.resize((image.width * 2, image.height * 2), Image.Resampling.BILINEAR),
    "half the size, as JPEG": lambda image: _jpeg(image.resize((image.width // 2, image.height // 2)), 60),
    "brighter by a tenth": lambda image: ImageEnhance.Brightness(image).enhance(1.1),
    "darker by a tenth": lambda image: ImageEnhance.Brightness(image).enhance(0.9),
    "more contrast": lambda image: ImageEnhance.Contrast(image).enhance(1.1),
    "grey": lambda image: image.convert("L").convert("RGB"),
    "mirrored": ImageOps.mirror,
    "mirrored, as JPEG": lambda image: _jpeg(ImageOps.mirror(image), 60),
}


def _jpeg(image: Image.Image, quality: int) -> Image.Image:
    return Image.fromarray(decode(encoded(image, "JPEG", quality=quality)).permute(1, 2, 0).numpy())


def pixels(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def gathered(images: list[Image.Image]) -> Prints:
    prints = [fingerprint(pixels(image)) for image in images]
    blank = np.zeros((16, 16), dtype=np.int8)
    return Prints(
        digests=np.array([print_.digest for print_ in prints], dtype=np.uint64),
        hashes=np.array([print_.hash for print_ in prints], dtype=np.uint64),
        details=np.stack([blank if print_.detail is None else print_.detail for print_ in prints]),
        comparable=np.array([print_.detail is not None for print_ in prints]),
    )


@pytest.fixture(scope="module")
def scenes() -> list[Image.Image]:
    return [photo(seed) for seed in range(SCENES)]


@pytest.mark.parametrize("change", CHANGES)
def test_every_planted_copy_is_found_and_nothing_else(change, scenes) -> None:
    copies = [CHANGES[change](scene) for scene in scenes]
    twins = near_duplicates(gathered(scenes + copies), np.repeat([0, 1], SCENES), 2)
    found = twins.partner[:SCENES, 1]
    right = found == np.arange(SCENES, 2 * SCENES)
    recall = right.mean()
    precision = right.sum() / (found >= 0).sum()
    assert (recall, precision) == (1.0, 1.0)
    np.testing.assert_array_equal(twins.partner[SCENES:, 0], np.arange(SCENES))  # and the other way round
    assert (twins.mirrored[:SCENES, 1] == change.startswith("mirrored")).all()
    assert (twins.partner[:SCENES, 0] < 0).all()  # no scene resembles another scene


def test_two_shirts_with_the_same_outline_are_not_the_same_picture() -> None:
    random = np.random.default_rng(0)
    outline = np.zeros((28, 28))
    outline[3:26, 7:21] = 190
    outline[4:10, 3:25] = 190
    weaves = random.normal(0, 20, (40, 7, 7)).repeat(4, axis=1).repeat(4, axis=2)
    shirts = [Image.fromarray((outline + (outline > 0) * weave).clip(0, 255).astype(np.uint8)) for weave in weaves]
    prints = gathered(shirts)
    values = np.stack([np.asarray(shirt, dtype=np.float64).ravel() for shirt in shirts])
    assert np.corrcoef(values)[np.triu_indices(40, 1)].min() > 0.9  # whatever compares pixels is fooled
    assert (near_duplicates(prints, np.zeros(40, dtype=np.int64), 1, bits=11).partner < 0).all()


@pytest.mark.parametrize("size", [(28, 28), (41, 77), (1, 300), (1200, 2), (5, 5)])
def test_the_hash_is_the_signs_of_the_cosine_transform_written_out(size) -> None:
    random = np.random.default_rng(1)
    grey = random.integers(0, 256, size, dtype=np.uint8)
    small = _mean_over_cells(grey.astype(np.float64), 32)
    waves = [[np.cos(np.pi * k * (n + 0.5) / 32) for n in range(32)] for k in range(8)]
    spectrum = np.einsum("yx,uy,vx->uv", small, waves, waves)
    sure = np.abs(spectrum) > 1e-2
    wanted = spectrum > 0
    found = fingerprint(torch.from_numpy(grey)[None]).hash
    bits = np.array([found >> at & 1 for at in range(64)], dtype=bool).reshape(8, 8)
    assert not bits[0, 0]
    sure[0, 0] = False
    assert sure.sum() >= 7
    np.testing.assert_array_equal(bits[sure], wanted[sure])


def _mean_over_cells(image: np.ndarray, side: int) -> np.ndarray:
    """Average over cells of equal size by repeating every pixel until the cells are whole pixels."""
    fine = image.repeat(side, axis=0).repeat(side, axis=1)
    height, width = image.shape
    return fine.reshape(side, height, side, width).mean((1, 3))


@given(st.integers(0, 10_000))
def test_mirroring_flips_the_bits_of_the_odd_frequencies(seed) -> None:
    image = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (3, 40, 53), dtype=np.uint8))
    ours, theirs = fingerprint(image), fingerprint(image.flip(2))
    assert (ours.hash ^ theirs.hash ^ int(MIRROR)).bit_count() <= 1  # one that is nearly zero may fall to either side
    np.testing.assert_allclose(ours.detail, theirs.detail[:, ::-1], atol=1)


def test_a_digest_is_of_the_pixels_and_of_the_shape() -> None:
    image = torch.arange(24, dtype=torch.uint8).reshape(3, 2, 4)
    changed = image.clone()
    changed[2, 1, 3] += 1
    given = [
        image,
        image.clone(),
        image.contiguous(memory_format=torch.contiguous_format),
        changed,
        image.reshape(3, 4, 2),
    ]
    digests = [fingerprint(one, near=False).digest for one in given]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests)) == 3
    last = image.permute(1, 2, 0).contiguous().permute(2, 0, 1)  # the same pixels in another order of memory
    assert fingerprint(last).digest == digests[0]


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_a_flat_image_is_like_no_other(channels) -> None:
    assert fingerprint(torch.full((channels, 9, 7), 120, dtype=torch.uint8)).detail is None
    assert fingerprint(torch.full((channels, 1, 1), 3, dtype=torch.uint8)).detail is None
    noisy = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (channels, 9, 7), dtype=np.uint8))
    assert fingerprint(noisy).detail is not None


@pytest.mark.parametrize("bits", [0, 3, 4, 7, 11])
@pytest.mark.parametrize("flip", [np.uint64(0), MIRROR])
def test_banding_finds_each_pair_that_comparing_everything_finds_once(bits, flip, monkeypatch) -> None:
    monkeypatch.setattr(duplicates, "CHUNK", 50)
    random = np.random.default_rng(bits)
    hashes = random.integers(0, 2**63, 300, dtype=np.uint64)
    for near in range(1, 200):  # neighbours that differ in 0 to 14 bits
        flips = random.choice(63, random.integers(0, 15), replace=False)
        hashes[near] = hashes[near - 1] ^ np.uint64(sum(1 << int(bit) for bit in flips))
    found = [
        (one, other)
        for ones, others in duplicates._candidates(hashes, flip, bits)
        for one, other in zip(ones, others, strict=True)
    ]
    distance = [[bin(int(one) ^ int(other) ^ int(flip)).count("1") for other in hashes] for one in hashes]
    wanted = {(one, other) for one in range(300) for other in range(one + 1, 300) if distance[one][other] <= bits}
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_copies_of_the_same_pixels_share_their_near_duplicate() -> None:
    scene, other = photo(1), photo(2)
    images = [scene, scene, other, _jpeg(scene, 60), _jpeg(scene, 50)]
    twins = near_duplicates(gathered(images), np.array([0, 0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(twins.partner[:, 0], [-1, -1, -1, 0, 0])
    assert twins.partner[0, 1] == twins.partner[1, 1] == 3  # the better copy
    assert twins.partner[2, 1] == -1
    np.testing.assert_array_equal(twins.partner[3:, 1], [4, 3])


def test_nothing_and_one_image_have_no_twin() -> None:
    for count in (0, 1):
        prints = (
            gathered([photo(1)] * count)
            if count
            else Prints(
                digests=np.zeros(0, dtype=np.uint64),
                hashes=np.zeros(0, dtype=np.uint64),
                details=np.zeros((0, 16, 16), dtype=np.int8),
                comparable=np.zeros(0, dtype=bool),
            )
        )
        assert near_duplicates(prints, np.zeros(count, dtype=np.int64), 1).partner.shape == (count, 1)
