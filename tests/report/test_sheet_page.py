import base64
import io
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pytest
import torch
from PIL import Image

from tests.report.pages import headings, part, read, words
from vitrail.base.errors import InputError, WriteError
from vitrail.data.survey.sheet import Pair, Pairs, Picture, Sheet, SheetClass
from vitrail.report.sheet_page import render_sheet, write_sheet

RED, BLUE = (200, 30, 30), (30, 30, 200)


def picture(
    colour=RED, *, label: str | None = "ant", split: str = "train", name: str = "1.jpg", side: int = 8
) -> Picture:
    pixels = torch.tensor(colour, dtype=torch.uint8)[:, None, None].expand(3, side, side)
    return Picture(pixels=pixels, name=name, split=split, label=label)


def class_of(label: str | None, **changes) -> SheetClass:
    values = {
        "label": label,
        "counts": {"train": 1200, "test": 3},
        "examples": [picture(label=label)] * 2,
        "versions": [picture(BLUE).pixels] * 6,
    }
    return SheetClass(**(values | changes))


def sheet_of(**changes) -> Sheet:
    twins = [
        Pair(first=picture(), second=picture(BLUE, split="test", name="2.jpg"), kind="mirrored", similarity=0.9912),
        Pair(first=picture(), second=picture(split="test", name="3.jpg"), kind="exact", similarity=1.0),
    ]
    values = {
        "where": "photos",
        "split": "train",
        "classes": [class_of("ant"), class_of("bee")],
        "total": 2,
        "augmentation": "by a crop",
        "image_size": (224, 192),
        "pairs": [Pairs(title="Images that are also in a later split", pairs=twins, total=7)],
    }
    return Sheet(**(values | changes))


def images(node: Element) -> list[np.ndarray]:
    """The pictures below, read back from their addresses."""
    pictures = []
    for image in node.iter("img"):
        start, _, data = image.get("src", "").partition(",")
        assert start == "data:image/png;base64"
        pictures.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")))
    return pictures


def test_the_page_shows_classes_with_their_counts_and_images() -> None:
    page = read(render_sheet(sheet_of()))
    assert headings(page) == ["Classes", "What training makes of them", "Images that are also in a later split"]
    assert [words(node) for node in page.iter("h1")] == ["photos"]
    assert "2 classes." in words(page)
    classes = part(page, "Classes")
    assert [words(node) for node in classes.iter("h3")] == ["ant", "bee"]
    assert words(classes).count("1,200 train, 3 test") == 2
    assert len(images(classes)) == 4
    assert all((image == RED).all() for image in images(classes))
    assert [node.get("alt") for node in classes.iter("img")][::2] == ["train: ant, 1.jpg", "train: bee, 1.jpg"]


def test_the_page_shows_what_training_makes_of_them() -> None:
    section = part(read(render_sheet(sheet_of())), "What training makes of them")
    assert "augmented by a crop, to 224x192 pixels." in words(section)
    assert len(images(section)) == 12
    assert all((image == BLUE).all() for image in images(section))
    assert headings(read(render_sheet(sheet_of(augmentation=None, pairs=[])))) == ["Classes"]


def test_pairs_stand_side_by_side_and_the_rest_is_counted() -> None:
    pairs = part(read(render_sheet(sheet_of())), "Images that are also in a later split")
    first, second = pairs.iter("figure")
    one, other = images(first)
    assert (one == RED).all()
    assert (other == BLUE).all()
    assert words(first) == "train: ant 1.jpgtest: ant 2.jpgmirrored, 0.991"
    assert words(second).endswith("same pixels")
    assert "And 5 more." in words(pairs)


def test_it_says_when_classes_are_left_out_or_have_no_names() -> None:
    assert "The 2 most frequent of 1,000 classes." in words(read(render_sheet(sheet_of(total=1000))))
    unlabelled = render_sheet(sheet_of(total=0, classes=[class_of(None)], pairs=[]))
    assert "Images without labels." in words(read(unlabelled))
    assert [words(node) for node in read(unlabelled).iter("h3")] == ["no label"] * 2


@pytest.mark.parametrize(
    "label",
    ["Bär", "犬と猫", "عنكبوت", "🐝🐝", "a\nb", "", "x" * 500, "e\u0301", "<script>alert(1)</script>", '"&amp;'],
)
def test_any_class_name_is_text(label: str) -> None:
    page = read(render_sheet(sheet_of(classes=[class_of(label)], pairs=[])))
    assert [words(node) for node in page.iter("h3")] == [label] * 2
    assert not list(page.iter("script"))


def test_names_that_are_no_text_do_not_stop_it() -> None:
    page = render_sheet(sheet_of(classes=[class_of("\x00\udce9\x1b")]))
    assert "\N{REPLACEMENT CHARACTER}" * 3 in page
    page.encode()


def test_small_pictures_show_their_pixels_and_large_ones_are_shrunk() -> None:
    examples = [picture(side=64), picture(side=65), picture(side=256)]
    page = read(render_sheet(sheet_of(classes=[class_of("ant", examples=examples)], augmentation=None, pairs=[])))
    assert [node.get("class") for node in page.iter("img")] == ["few", None, None]
    assert [len(image) for image in images(page)] == [64, 65, 128]


def test_the_page_needs_nothing_else_and_is_the_same_every_time() -> None:
    page = render_sheet(sheet_of())
    assert "default-src 'none'; img-src data:" in page.replace("&#x27;", "'")
    assert "http:" not in page
    assert "https:" not in page
    assert page == render_sheet(sheet_of())


def test_a_page_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.html"
    write_sheet(sheet_of(), path)
    assert path.read_text() == render_sheet(sheet_of())
    with pytest.raises(InputError, match="no folder"):
        write_sheet(sheet_of(), tmp_path / "nowhere" / "x.html")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(WriteError, match="No space left"):
        write_sheet(sheet_of(), path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1
