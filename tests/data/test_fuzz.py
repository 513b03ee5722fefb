"""Mutated image files: pixels, or one sentence, and nothing else; the same with and without the fast path."""

import resource

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.corpus_images import good
from vitrail.base.errors import ImageError
from vitrail.data.pixels import encoded as decode_module
from vitrail.data.pixels.decode import decode, probe

GOOD = good()
MOST = 1_000_000  # pixels, so that a mutated size is refused rather than filled
MEMORY = 300 << 10  # KiB that a whole test may take: a few times what such an image needs


@st.composite
def mutated(draw, encoded: bytes) -> bytes:
    """Cut, flip, overwrite, repeat, insert or erase a part of a file, more often near its beginning."""
    changed = bytearray(encoded)
    for _ in range(draw(st.integers(1, 4))):
        last = max(len(changed) - 1, 0)
        at = draw(st.integers(0, last) | st.integers(0, min(200, last)))
        match draw(st.sampled_from(["flip", "cut", "write", "large", "insert", "repeat", "erase"])):
            case "flip":
                changed[at : at + 1] = bytes(value ^ draw(st.integers(1, 255)) for value in changed[at : at + 1])
            case "cut":
                del changed[at:]
            case "write":
                new = draw(st.binary(min_size=1, max_size=8))
                changed[at : at + len(new)] = new
            case "large":
                changed[at : at + 4] = draw(st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f"]))
            case "insert":
                changed[at:at] = draw(st.binary(min_size=1, max_size=16))
            case "repeat":
                changed[at:at] = changed[at : at + draw(st.integers(1, 64))]
            case "erase":
                changed[at : at + 8] = bytes(8)
    return bytes(changed)


def outcome(encoded: bytes) -> torch.Tensor | str:
    made: torch.Tensor | str
    try:
        made = decode(encoded, max_pixels=MOST)
    except ImageError as error:
        made = str(error)
    if isinstance(made, str):
        assert made.endswith(".")
        assert "\n" not in made
        return made
    assert made.shape[0] == 3
    assert made[0].numel() <= MOST
    return made


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("kind", GOOD)
def test_a_mutated_file_gives_pixels_or_a_sentence(kind, capfd) -> None:
    before = peak()

    @settings(max_examples=30)
    @given(mutated(GOOD[kind]))
    def holds(changed: bytes) -> None:
        made = outcome(changed)
        try:
            header = probe(changed)
        except ImageError:
            assert isinstance(made, str)
        else:
            assert isinstance(made, str) or made.shape == (3, header.height, header.width) or kind.startswith("png")

    holds()
    assert peak() - before < MEMORY
    if not kind.startswith("tiff"):  # libtiff writes its complaints itself, and Pillow has no way to stop it
        assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", [kind for kind in GOOD if kind.startswith("jpeg")])
def test_both_jpeg_paths_agree_about_mutated_files(kind, monkeypatch) -> None:
    fast_path = decode_module.simplejpeg

    @settings(max_examples=40)
    @given(mutated(GOOD[kind]))
    def holds(changed: bytes) -> None:
        monkeypatch.setattr(decode_module, "simplejpeg", fast_path)
        fast = outcome(changed)
        monkeypatch.setattr(decode_module, "simplejpeg", None)
        slow = outcome(changed)
        assert fast == slow if isinstance(fast, str) else torch.equal(fast, slow)

    holds()


@settings(max_examples=100)
@given(
    st.binary(max_size=300),
    st.sampled_from(
        [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\0", b"MM\0+", b"RIFF1234WEBP"]
    ),
)
def test_random_bytes_behind_a_known_beginning_are_refused(data, start) -> None:
    assert isinstance(outcome(start + data), str) or start in (b"GIF89a", b"BM")
