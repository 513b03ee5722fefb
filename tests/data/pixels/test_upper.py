"""The upper part of a photo is that of the whole."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.data.arrays import dataset
from vitrail.base.errors import ImageError
from vitrail.base.seeds import key, keys, uniform
from vitrail.data.augment.geometry import rows_needed
from vitrail.data.augment.settings import Augmentation
from vitrail.data.loader import training_batches
from vitrail.data.pixels import upper
from vitrail.data.pixels.decode import decode
from vitrail.data.pixels.upper import decode_upper

pytest.importorskip("simplejpeg")


def photo(height: int = 90, width: int = 70, mode: str = "RGB", **options) -> bytes:
    rng = np.random.default_rng(height * width)
    coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((width, height), 3)
    grain = rng.normal(0, 12, (height, width, 3))
    image = Image.fromarray(np.clip(np.asarray(coarse) + grain, 0, 255).astype(np.uint8)).convert(mode)
    file = io.BytesIO()
    image.save(file, "JPEG", **({"quality": 90} | options))
    return file.getvalue()


@given(st.integers(2, 130), st.integers(1, 70), st.integers(0, 2), st.sampled_from(["RGB", "L"]), st.data())
def test_the_rows_that_are_needed_are_those_of_the_whole_photo(
    height: int, width: int, subsampling: int, mode: str, data: st.DataObject
) -> None:
    rows = data.draw(st.integers(1, height))
    encoded = photo(height, width, mode, **({"subsampling": subsampling} if mode == "RGB" else {}))
    found = decode_upper(encoded, lambda size: rows if size == (height, width) else 0)
    whole = decode(encoded)
    if found is None:
        assert rows + upper.CONTEXT >= height  # nothing to gain
    else:
        assert found.shape == whole.shape
        assert torch.equal(found[:, :rows], whole[:, :rows])


def test_most_crops_of_a_plain_photo_need_only_its_upper_part() -> None:
    assert decode_upper(photo(), lambda _: 50) is not None
    assert decode_upper(photo(optimize=True), lambda _: 50) is not None
    assert decode_upper(photo(exif=exif(1)), lambda _: 50) is not None


@pytest.mark.parametrize("kind", ["progressive", "turned", "cmyk", "restarts", "png", "empty"])
def test_files_of_any_other_kind_are_left_to_the_decoder(kind: str) -> None:
    png = io.BytesIO()
    Image.new("RGB", (20, 90)).save(png, "PNG")
    encoded = {
        "progressive": lambda: photo(progressive=True),
        "turned": lambda: photo(exif=exif(6)),
        "cmyk": lambda: photo(mode="CMYK"),
        "restarts": lambda: photo(restart_marker_rows=1),
        "png": png.getvalue,
        "empty": bytes,
    }[kind]()
    assert decode_upper(encoded, lambda _: 50) is None


def exif(orientation: int) -> Image.Exif:
    made = Image.Exif()
    made[0x0112] = orientation
    return made


def test_a_truncated_photo_is_left_to_the_decoder_which_refuses_it() -> None:
    encoded = photo()
    for length in (len(encoded) - 2, len(encoded) // 2, 700, 100, 3):
        assert decode_upper(encoded[:length], lambda _: 30) is None
        with pytest.raises(ImageError):
            decode(encoded[:length])


def test_damage_in_the_rows_that_are_needed_is_not_overlooked() -> None:
    encoded = bytearray(photo())
    start = encoded.index(b"\xff\xda") + 200
    encoded[start : start + 2] = b"\xff\xc8"  # a marker where there is none
    assert decode_upper(bytes(encoded), lambda _: 60) is None


@given(st.integers(0, 2**62), st.integers(1, 20))
def test_no_bytes_make_it_fail(seed: int, flips: int) -> None:
    rng = np.random.default_rng(seed)
    encoded = bytearray(photo(40, 30))
    for at in rng.integers(0, len(encoded), flips):
        encoded[at] = rng.integers(0, 256)
    found = decode_upper(bytes(encoded), lambda size: size[0] // 2)
    assert found is None or found.dtype == torch.uint8


def test_a_header_that_promises_too_many_pixels_is_left_to_the_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_IMAGE_PIXELS", "1000")
    assert decode_upper(photo(), lambda _: 30) is None


def test_batches_are_the_same_with_and_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset([photo(90 + 10 * at, 130 - 9 * at) for at in range(8)], np.arange(8))

    def batches() -> torch.Tensor:
        made = training_batches(
            data, image_size=(48, 64), augmentation=Augmentation(antialias=True), batch=4, seed=0, stop_step=8
        )
        return torch.cat([batch.images for batch in made])

    with_it = batches()
    monkeypatch.setattr(upper, "simplejpeg", None)
    assert torch.equal(with_it, batches())


def test_the_rows_that_a_crop_needs_end_with_its_box() -> None:
    augmentation = Augmentation(area=(0.05, 0.3))
    draws = uniform(keys(key(0, "test"), np.arange(200)), augmentation.draws).tolist()
    rows = [rows_needed((300, 400), augmentation, one) for one in draws]
    assert max(rows) <= 300
    assert np.mean(rows) < 240
    assert rows_needed((300, 400), Augmentation(crop="pad"), draws[0]) == 300
