"""The decoder beside what was put into the files, beside Pillow and beside itself without the fast path."""

import io
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
import simplejpeg
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile, ImageOps
from PIL.PngImagePlugin import PngInfo

from tests.data.corpus_images import HEIGHT, WIDTH, bad, bomb, exif, good, saved, sixteen_bit_colours, turned, ycck
from tests.golden.preprocessing_images import photo
from vitrail.base.errors import ImageError
from vitrail.data.pixels import encoded as decode_module
from vitrail.data.pixels.decode import Header, decode, from_array, from_pil, probe, to_channels

GOOD, BAD = good(), bad()
COLOURS, FOUR = photo(HEIGHT, WIDTH), photo(HEIGHT, WIDTH, 4)


def pixels(encoded: bytes) -> np.ndarray:
    """What the decoder makes of a file, as height x width x channel."""
    return decode(encoded).permute(1, 2, 0).numpy()


def without_the_fast_path(encoded: bytes, monkeypatch) -> torch.Tensor | str:
    with monkeypatch.context() as patch:
        patch.setattr(decode_module, "simplejpeg", None)
        return outcome(encoded)


def outcome(encoded: bytes) -> torch.Tensor | str:
    try:
        return decode(encoded)
    except ImageError as error:
        return str(error)


def on_white(values: np.ndarray) -> np.ndarray:
    colours, alpha = values[..., :-1].astype(float), values[..., -1:] / 255
    return np.round(colours * alpha + 255 * (1 - alpha))


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_file_becomes_red_green_and_blue_pixel_by_pixel_in_memory(kind) -> None:
    made = decode(GOOD[kind])
    assert made.shape[0] == 3
    assert {made.shape[1], made.shape[2]} == {HEIGHT, WIDTH}
    assert made.permute(1, 2, 0).is_contiguous()
    assert made.dtype == torch.uint8


@pytest.mark.parametrize(
    "kind",
    [
        "png",
        "apng",
        "webp",
        "webp animated",
        "bmp",
        "gif animated",
        "tiff",
        "tiff big",
        "tiff tiff_lzw",
        "tiff tiff_adobe_deflate",
        "tiff packbits",
    ],
)
def test_formats_without_loss_give_back_the_pixels_of_their_first_frame(kind) -> None:
    wanted = Image.fromarray(COLOURS).quantize(16).convert("RGB") if "gif" in kind else COLOURS
    np.testing.assert_array_equal(pixels(GOOD[kind]), wanted)


@pytest.mark.parametrize("kind", ["png palette", "bmp palette", "gif", "tiff palette"])
def test_a_palette_is_looked_up(kind) -> None:
    palette = Image.fromarray(COLOURS).quantize(16)
    table = np.array(palette.getpalette()).reshape(-1, 3)
    np.testing.assert_array_equal(pixels(GOOD[kind]), table[np.array(palette)])


@pytest.mark.parametrize("kind", ["png grey", "bmp grey", "png bit", "bmp bit", "tiff bit"])
def test_grey_and_single_bits_have_three_equal_channels(kind) -> None:
    grey = Image.fromarray(COLOURS).convert("L")
    wanted = np.array(grey.convert("1")) * 255 if "bit" in kind else np.array(grey)
    np.testing.assert_array_equal(pixels(GOOD[kind]), np.repeat(wanted[:, :, None], 3, axis=2))


@pytest.mark.parametrize("kind", ["webp alpha", "tiff alpha"])
def test_transparent_parts_lie_on_white(kind) -> None:
    assert np.abs(pixels(GOOD[kind]) - on_white(FOUR)).max() <= 1


def test_transparent_grey_and_palettes_lie_on_white() -> None:
    colours = Image.fromarray(COLOURS)
    grey, palette = np.array(colours.convert("L")), colours.quantize(16)
    index, table = np.array(palette), np.array(palette.getpalette()).reshape(-1, 3)
    two = np.array(Image.fromarray(FOUR).convert("LA"))
    assert np.abs(pixels(GOOD["png grey alpha"]) - on_white(two)).max() <= 1
    np.testing.assert_array_equal(pixels(GOOD["png grey clear"])[..., 0], np.where(grey == 7, 255, grey))
    clear = (COLOURS[3, 4] == COLOURS).all(axis=2, keepdims=True)
    assert clear.any()
    np.testing.assert_array_equal(pixels(GOOD["png colours clear"]), np.where(clear, 255, COLOURS))
    for kind, hidden in (("png palette clear", 3), ("gif clear", 2)):
        wanted = np.where(index[..., None] == hidden, 255, table[index])
        np.testing.assert_array_equal(pixels(GOOD[kind]), wanted)
    alpha = np.concatenate([table, np.arange(0, 160, 10)[:, None]], axis=1)
    assert np.abs(pixels(GOOD["png palette alpha"]) - on_white(alpha[index])).max() <= 1


def test_sixteen_bits_are_scaled_and_not_clipped() -> None:
    values = photo(HEIGHT, WIDTH, 1)[:, :, 0].astype(np.uint16) * 251
    for kind in ("png 16 bits", "tiff 16 bits", "tiff whole numbers"):
        np.testing.assert_array_equal(pixels(GOOD[kind])[..., 1], np.round(values / 257))
    big_endian = saved(Image.frombytes("I;16B", (WIDTH, HEIGHT), values.astype(">u2").tobytes()), "TIFF")
    np.testing.assert_array_equal(pixels(big_endian)[..., 1], np.round(values / 257))
    ends = Image.fromarray(np.array([[0, 65535, 257, 128, 129]], np.uint16))
    np.testing.assert_array_equal(pixels(saved(ends, "PNG"))[0, :, 0], [0, 255, 1, 0, 1])
    np.testing.assert_array_equal(pixels(saved(ends, "PNG", transparency=257))[0, :, 0], [0, 255, 255, 0, 1])
    encoded, colours = sixteen_bit_colours()
    assert np.abs(pixels(encoded) - colours / 257).max() <= 1  # Pillow keeps the high byte


def test_other_ways_to_write_colours_come_out_right() -> None:
    assert np.abs(pixels(GOOD["tiff cmyk"]).astype(int) - COLOURS).max() <= 1
    assert np.abs(pixels(GOOD["tiff ycbcr"]).astype(int) - COLOURS).max() <= 3
    assert np.abs(pixels(GOOD["tiff lab"]).astype(int) - COLOURS).mean() <= 3
    for colour in ("red", "lime", "blue", "white", "black", "orange"):
        plain = Image.new("RGB", (16, 16), colour)
        rgb = plain.getpixel((0, 0))
        for encoded in (saved(plain.convert("CMYK"), "JPEG", quality=100), ycck(rgb)):
            assert np.abs(pixels(encoded) - np.array(rgb)).max() <= 4, colour


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright_in_every_format(orientation) -> None:
    """The stored image is turned as TIFF 6.0 defines: where its first row and its first column belong."""
    first_row, first_column = {
        1: ("top", "left"),
        2: ("top", "right"),
        3: ("bottom", "right"),
        4: ("bottom", "left"),
        5: ("left", "top"),
        6: ("right", "top"),
        7: ("right", "bottom"),
        8: ("left", "bottom"),
    }[orientation]
    stored = np.full((16, 24, 3), 128, np.uint8)
    stored[:4] = (255, 0, 0)  # the first row is red
    stored[4:, :4] = (0, 0, 255)  # the first column is blue
    image = Image.fromarray(stored)
    raw = f"\nexif\n{len(exif(orientation))}\n{exif(orientation).hex()}\n"
    text = PngInfo()
    text.add_text("Raw profile type exif", raw)
    for encoded in (
        saved(image, "PNG", exif=exif(orientation)),
        saved(image, "PNG", pnginfo=text),
        saved(image, "WEBP", lossless=True, exif=exif(orientation)),
        saved(image, "TIFF", tiffinfo=turned(orientation)),
        saved(image, "JPEG", quality=100, subsampling=0, exif=exif(orientation)),
    ):
        made = pixels(encoded).astype(int)
        assert made.shape[:2] == ((24, 16) if orientation >= 5 else (16, 24))
        middle = {
            "top": made[1, made.shape[1] // 2],
            "bottom": made[-2, made.shape[1] // 2],
            "left": made[made.shape[0] // 2, 1],
            "right": made[made.shape[0] // 2, -2],
        }
        assert np.abs(middle[first_row] - (255, 0, 0)).max() < 8
        assert np.abs(middle[first_column] - (0, 0, 255)).max() < 8
        assert np.abs(made - np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(encoded))))).max() <= 0
        header = probe(encoded)
        assert (header.height, header.width) == made.shape[:2]
        assert header.orientation == orientation


@given(st.binary(max_size=60), st.sampled_from([b"", b"Exif\0\0", b"Exif\0\0II*\0\x08\0\0\0\x01\0", b"Exif\0\0MM\0*"]))
def test_damaged_exif_is_no_reason_to_refuse(data, start) -> None:
    encoded = saved(Image.fromarray(COLOURS), "JPEG", exif=start + data)
    assert decode(encoded).shape[0] == 3
    assert probe(encoded).orientation in range(1, 9)


@pytest.mark.parametrize("subsampling", ["444", "422", "420", "440", "411", "Gray"])
@pytest.mark.parametrize("size", [(48, 64), (47, 33), (1, 1), (9, 1), (1, 9), (31, 50)])
def test_the_fast_path_gives_the_same_pixels_as_pillow(subsampling, size, monkeypatch) -> None:
    encoded = simplejpeg.encode_jpeg(photo(*size), 85, "RGB", subsampling)
    made = decode(encoded)
    assert torch.equal(made, without_the_fast_path(encoded, monkeypatch))
    np.testing.assert_array_equal(made.permute(1, 2, 0), Image.open(io.BytesIO(encoded)).convert("RGB"))


@pytest.mark.parametrize("kind", [kind for kind in GOOD if "jpeg" in kind])
def test_both_paths_refuse_the_same_truncations(kind, monkeypatch) -> None:
    encoded = GOOD[kind]
    assert torch.equal(decode(encoded), without_the_fast_path(encoded, monkeypatch))
    for length in [*range(1, len(encoded), 37), len(encoded) - 2, len(encoded) - 1]:
        fast, slow = outcome(encoded[:length]), without_the_fast_path(encoded[:length], monkeypatch)
        assert fast == slow if isinstance(fast, str) else torch.equal(fast, slow)
        assert isinstance(fast, str) or "tiff" in kind, length


@pytest.mark.parametrize("kind", GOOD)
def test_a_truncated_file_is_refused_in_a_sentence(kind) -> None:
    encoded = GOOD[kind]
    first_frame = len(encoded) // 8 if kind in ("apng", "gif animated", "webp animated") else len(encoded) - 80
    for length in range(0, first_frame, max(len(encoded) // 40, 1)):
        with pytest.raises(ImageError, match=r"\.$"):
            decode(encoded[:length])


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_in_a_sentence(kind) -> None:
    with pytest.raises(ImageError, match=r"\.$") as refused:
        decode(BAD[kind])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_the_bomb_would_go_off() -> None:
    """A smaller one of the same make is a sound file, and black."""
    small = bomb(1500, 1000)
    assert len(small) < 10_000
    assert not pixels(small).any()


def test_the_cap_is_read_from_the_header_before_a_pixel_is_decoded(monkeypatch) -> None:
    for reader in (ImageFile.ImageFile, decode_module.WebPImageFile, decode_module.TiffImageFile):
        monkeypatch.setattr(reader, "load", lambda _: pytest.fail("decoded"))
    with pytest.raises(ImageError, match="10000x10000 pixels, more than the 89,478,485"):
        decode(bomb(10_000, 10_000))
    for kind in ("jpeg", "png", "webp", "bmp", "gif", "tiff"):
        with pytest.raises(ImageError, match="34x23 pixels, more than the 781 "):
            decode(GOOD[kind], max_pixels=HEIGHT * WIDTH - 1)
    with pytest.raises(ImageError, match="34x23 pixels, more than the 9 "):
        from_pil(Image.fromarray(COLOURS), max_pixels=9)


@pytest.mark.parametrize("size", [(1, 1), (1, 65_535), (65_535, 1)])
def test_tiny_and_long_images_are_read(size) -> None:
    image = Image.fromarray(photo(*size))
    for form in ("PNG", "BMP", "TIFF"):
        np.testing.assert_array_equal(pixels(saved(image, form)), photo(*size))
    assert decode(saved(Image.fromarray(photo(1, 65_500)), "JPEG")).shape == (3, 1, 65_500)


def test_nothing_outside_is_changed() -> None:
    before = (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS, list(warnings.filters))
    for encoded in [*GOOD.values(), *BAD.values()]:
        outcome(encoded)
    assert before == (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS, list(warnings.filters))


def test_threads_decode_side_by_side_and_in_silence() -> None:
    """Some files make Pillow warn, which would be an error here."""
    loud = [BAD["png whose animation lies"], BAD["tiff of huge counts"]]
    for encoded in loud:
        with pytest.warns(UserWarning, match="APNG|Tag|Truncated|Corrupt"), suppress(Exception):
            Image.open(io.BytesIO(encoded)).load()
    files = [GOOD["tiff"], GOOD["apng"], GOOD["jpeg"], *loud] * 20
    alone = [outcome(encoded) for encoded in files]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(outcome, files))
    for one, other in zip(alone, together, strict=True):
        assert one == other if isinstance(one, str) else torch.equal(one, other)


@pytest.mark.parametrize("kind", GOOD)
def test_a_header_says_the_size_that_decoding_gives(kind, tmp_path) -> None:
    header, made = probe(GOOD[kind]), decode(GOOD[kind])
    assert (3, header.height, header.width) == made.shape
    assert header.format == kind.split()[0].replace("apng", "png").upper()
    path = tmp_path / "named.wrongly"
    path.write_bytes(GOOD[kind])
    assert probe(path) == header


def test_a_header_is_read_of_what_is_too_large_and_refused_of_what_is_no_image(tmp_path) -> None:
    wanted = Header(format="PNG", width=10_000, height=10_000, mode="RGB", orientation=1)
    assert probe(BAD["png bomb"]) == wanted
    with pytest.raises(ImageError, match="is empty"):
        probe(b"")
    with pytest.raises(ImageError, match="No such file"):
        probe(tmp_path / "nowhere.png")


@pytest.mark.parametrize("kind", GOOD)
def test_an_image_of_pillow_follows_the_rules_of_files(kind) -> None:
    with Image.open(io.BytesIO(GOOD[kind])) as image:
        assert torch.equal(from_pil(image), decode(GOOD[kind]))


def test_an_image_of_pillow_that_is_broken_is_refused_in_a_sentence() -> None:
    with pytest.raises(ImageError, match="broken or truncated"):
        from_pil(Image.open(io.BytesIO(GOOD["png"][:-200])))


def test_arrays_become_pixels_without_a_copy() -> None:
    array = photo(5, 7, 13)
    made = from_array(array)
    assert made.shape == (13, 5, 7)
    array[2, 3, 4] ^= 255
    np.testing.assert_array_equal(made.permute(1, 2, 0), array)
    frozen = array[::2, ::-1]
    frozen.flags.writeable = False
    np.testing.assert_array_equal(from_array(frozen).permute(1, 2, 0), frozen)
    assert from_array(array[:, :, 0]).shape == (1, 5, 7)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros((4, 4)), "uint8.*not float64"),
        (np.zeros((4, 4), np.uint16), "uint8.*not uint16"),
        (np.zeros(4, np.uint8), r"not \(4,\)"),
        (np.zeros((1, 4, 4, 3), np.uint8), r"not \(1, 4, 4, 3\)"),
        (np.zeros((0, 4, 3), np.uint8), r"not \(0, 4, 3\)"),
    ],
)
def test_other_arrays_are_refused_in_a_sentence(array, complaint) -> None:
    with pytest.raises(ImageError, match=complaint):
        from_array(array)


def test_grey_and_colours_turn_into_each_other_as_in_pillow() -> None:
    colours = from_array(COLOURS)
    grey = to_channels(colours, 1)
    np.testing.assert_array_equal(grey[0], Image.fromarray(COLOURS).convert("L"))
    every = torch.cartesian_prod(*[torch.arange(0, 256, 15)] * 3).to(torch.uint8).T.reshape(3, 18, -1)
    wanted = Image.fromarray(every.permute(1, 2, 0).contiguous().numpy()).convert("L")
    np.testing.assert_array_equal(to_channels(every, 1)[0], wanted)
    three = to_channels(grey, 3)
    assert torch.equal(three, grey.expand(3, -1, -1))
    assert three.permute(1, 2, 0).is_contiguous()
    assert to_channels(colours, 3) is colours
    with pytest.raises(ImageError, match="13 channels cannot become one of 3"):
        to_channels(from_array(photo(4, 4, 13)), 3)
