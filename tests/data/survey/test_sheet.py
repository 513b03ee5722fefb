import numpy as np
import pytest
from PIL import Image

from tests.data.pictures import dataset, encoded, photo
from vitrail.base.errors import InputError, WriteError
from vitrail.data.augment.apply import NO_AUGMENTATION, Augmentation
from vitrail.data.loader import training_batches
from vitrail.data.survey import lettering, sheet
from vitrail.data.survey.leaks import Twin
from vitrail.data.survey.lettering import fit
from vitrail.data.survey.lettering import lettering as letters
from vitrail.data.survey.scan import survey
from vitrail.data.survey.sheet import CELL, GAP, MARGIN, NAMES, class_sheet, describe, pair_sheet, save_sheet

SIZE = (32, 32)
RED, GREEN, BLUE = (200, 30, 30), (30, 200, 30), (30, 30, 200)


def plain(colour, height: int = 20, width: int = 20) -> np.ndarray:
    return np.full((height, width, 3), colour, dtype=np.uint8)


def cell(image: Image.Image, row: int, place: int) -> np.ndarray:
    """Cut a picture out of a class sheet: `place` counts examples, then augmented versions."""
    top = MARGIN + sheet.TITLE + 2 * GAP + sheet.TEXT + 2 * GAP + row * (CELL + GAP)
    left = MARGIN + NAMES + place * (CELL + GAP) + (2 * GAP if place >= sheet.EXAMPLES else 0)
    return np.asarray(image)[top : top + CELL, left : left + CELL]


def test_every_class_has_a_row_of_its_own_pictures() -> None:
    arrays = [plain(RED)] * 9 + [plain(GREEN)] * 2 + [plain(BLUE)] * 7
    seen = survey({"train": dataset(arrays, [0] * 9 + [1] * 2 + [2] * 7)})
    drawn = class_sheet(seen, augmentation=NO_AUGMENTATION, image_size=SIZE)
    for row, colour in enumerate((RED, GREEN, BLUE)):
        for place in (0, 1, 6, 11):
            assert (cell(drawn, row, place) == colour).all()
    assert (cell(drawn, 0, 5) == RED).all()
    assert (cell(drawn, 1, 2) == 255).all()  # there are only two


def test_a_picture_keeps_its_shape_and_stands_in_the_middle() -> None:
    seen = survey({"train": dataset([plain(RED, 10, 40)], [0])})
    found = cell(class_sheet(seen, augmentation=None, image_size=SIZE), 0, 0)
    red = (found == RED).all(-1)
    assert red.sum() == CELL * CELL // 4
    assert (red == red[::-1]).all()


def test_the_versions_are_the_ones_that_training_sees() -> None:
    augmentation = Augmentation(layers=1, magnitude=5.0)
    data = dataset([encoded(photo(seed, 60, 50)) for seed in range(4)], [0, 0, 0, 0], labels=("only",))
    drawn = class_sheet(survey({"train": data}), augmentation=augmentation, image_size=(96, 96), seed=3)
    options = {"image_size": (96, 96), "channels": 3}
    stream = training_batches(data, batch=4, seed=3, augmentation=augmentation, stop_step=6, **options)
    for epoch in range(6):
        batch = next(stream)
        at = batch.indices.tolist().index(0)
        np.testing.assert_array_equal(cell(drawn, 0, 6 + epoch), batch.images[at].permute(1, 2, 0).numpy())


def test_broken_pictures_are_not_drawn_and_empty_classes_do_not_stop_it() -> None:
    seen = survey({"train": dataset([plain(RED), b"broken", plain(RED)], [0, 0, 0], labels=("a", "b"))})
    drawn = class_sheet(seen, augmentation=Augmentation(), image_size=SIZE)
    assert (cell(drawn, 0, 1) == RED).all()
    assert (cell(drawn, 0, 2) == 255).all()
    assert (cell(drawn, 1, 0) == 255).all()


def test_of_many_classes_the_most_frequent_are_drawn_and_it_says_so() -> None:
    count = 60
    targets = [at for at in range(count) for _ in range(3 if at >= 36 else 1)]
    seen = survey({"train": dataset([plain(RED)] * len(targets), targets)})
    drawn = class_sheet(seen, augmentation=None, image_size=SIZE)
    assert drawn.height < (sheet.MOST_CLASSES + 2) * (CELL + GAP)
    assert sheet._foot(seen, 24, None, SIZE) == ["The 24 most frequent of 60 classes."]
    assert (cell(drawn, 0, 2) == RED).all()  # each drawn class has three
    assert (cell(drawn, 23, 2) == RED).all()


def test_unlabelled_grey_and_many_channels_are_drawn() -> None:
    for array in (np.full((9, 9), 77, dtype=np.uint8), np.full((9, 9, 5), 77, dtype=np.uint8)):
        seen = survey({"all": dataset([array, array], [-1, -1], labels=(), channels=array.reshape(9, 9, -1).shape[2])})
        drawn = class_sheet(seen, augmentation=Augmentation(), image_size=SIZE)
        assert (cell(drawn, 0, 0) == 77).all()
        assert (cell(drawn, 0, 7) == 77).all()


@pytest.mark.parametrize("pairs", [1, 2, 3, 20, 23])
def test_pairs_stand_side_by_side(pairs) -> None:
    seen = survey({"train": dataset([plain(RED)] * 23, [0] * 23), "test": dataset([plain(BLUE)] * 23, [0] * 23)})
    twins = [Twin(row=at, other=23 + at, kind="near", similarity=0.99) for at in range(pairs)]
    drawn = np.asarray(pair_sheet(seen, twins, "Leaks"))
    for colour in (RED, BLUE):
        assert (drawn == colour).all(-1).sum() == min(pairs, 20) * CELL * CELL


def test_a_sheet_is_a_png_and_whole(tmp_path) -> None:
    parts = [Image.new("RGB", (30, 10), RED), Image.new("RGB", (20, 5), BLUE)]
    save_sheet(parts, tmp_path / "x.png")
    with Image.open(tmp_path / "x.png") as image:
        assert (image.format, image.size) == ("PNG", (30, 15))
        assert image.getpixel((29, 12)) == (255, 255, 255)
    assert [path.name for path in tmp_path.iterdir()] == ["x.png"]
    with pytest.raises(InputError, match="no folder"):
        save_sheet(parts, tmp_path / "nowhere" / "x.png")


def test_a_full_disk_leaves_the_old_sheet(tmp_path, monkeypatch) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(b"old")

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(WriteError, match="No space left"):
        save_sheet([Image.new("RGB", (3, 3))], path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


NAMES_OF_THE_WORLD = [
    "ant",
    "Bär",
    "犬と猫",
    "собака",
    "عنكبوت",
    "🐝🐝",
    "a\nb\tc",
    "\x00\x1b[31m",
    "",
    " ",
    "x" * 500,
    "e\u0301",
]


def test_any_class_name_can_be_drawn() -> None:
    names = tuple(NAMES_OF_THE_WORLD)
    arrays = [plain(RED)] * len(names)
    seen = survey({"train": dataset(arrays, list(range(len(names))), labels=names)})
    drawn = np.asarray(class_sheet(seen, augmentation=None, image_size=SIZE))
    gap = drawn[MARGIN + 60 :, MARGIN + NAMES - 2 * GAP : MARGIN + NAMES]
    assert set(map(tuple, np.unique(gap.reshape(-1, 3), axis=0))) <= {(255, 255, 255), (221, 221, 221)}  # no ink


def test_letters_that_no_font_has_become_question_marks(monkeypatch) -> None:
    monkeypatch.setattr(lettering, "_wider", lambda _: ())
    assert letters("犬 dog", 15)[0] == "? dog"
    assert letters("Bär", 15)[0] == "Bar"
    assert letters("a\nb\x00", 15)[0] == "a b"
    assert letters("plain", 15)[0] == "plain"


@pytest.mark.parametrize("width", [0, 5, 40, 100, 400])
def test_a_cut_text_fits_and_keeps_both_ends(width) -> None:
    text = "photographs/of/insects/ant-0000042.jpg"
    shown, font = fit(text, 12, width)
    assert font.getlength(shown) <= max(width, 0)
    if width == 100:
        assert "..." in shown
        assert text.startswith(shown.split("...")[0])
        assert text.endswith(shown.split("...")[1])
    if width == 400:
        assert shown == text


def test_an_augmentation_is_told_in_words() -> None:
    assert describe(Augmentation()) == "by a crop of 5% to 100% of the image, mirroring 50% of the time"
    assert describe(NO_AUGMENTATION) == "without a crop"
    everything = Augmentation(crop="pad", hue=0.1, layers=2, magnitude=9.0, erase=0.25)
    for word in ("shifting up to 4", "colours", "2 operations of magnitude 9", "erasing a box 25%"):
        assert word in describe(everything)
