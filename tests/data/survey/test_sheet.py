import numpy as np
import torch

from tests.data.pictures import dataset, encoded, photo
from vitrail.data.augment.apply import NO_AUGMENTATION, Augmentation
from vitrail.data.loader import training_batches
from vitrail.data.survey.leaks import Findings, Twin
from vitrail.data.survey.scan import Scan, scan
from vitrail.data.survey.sheet import LARGEST, MOST_CLASSES, MOST_PAIRS, Sheet, describe, make_sheet

SIZE = (32, 32)
RED, GREEN, BLUE = (200, 30, 30), (30, 200, 30), (30, 30, 200)
NOTHING = Findings(leaks=(), exact=(), near=(), conflicts=())


def plain(colour, height: int = 20, width: int = 20) -> np.ndarray:
    return np.full((height, width, 3), colour, dtype=np.uint8)


def sheet_of(result: Scan, augmentation: Augmentation | None = None, **options) -> Sheet:
    options = {"image_size": SIZE, "findings": NOTHING} | options
    return make_sheet(result, augmentation=augmentation, **options)


def all_are(pixels: torch.Tensor, colour) -> bool:
    return bool((pixels.permute(1, 2, 0) == torch.tensor(colour)).all())


def test_every_class_has_its_own_pictures_and_counts() -> None:
    arrays = [plain(RED)] * 9 + [plain(GREEN)] * 2 + [plain(BLUE)] * 7
    targets = [0] * 9 + [1] * 2 + [2] * 7
    result = scan({"train": dataset(arrays, targets), "test": dataset([plain(RED)], [0], labels=("class 0",))})
    sheet = sheet_of(result, NO_AUGMENTATION)
    assert (sheet.where, sheet.split, sheet.total, list(sheet.pairs)) == ("pictures", "train", 3, [])
    assert [found.label for found in sheet.classes] == ["class 0", "class 1", "class 2"]
    assert [dict(found.counts) for found in sheet.classes] == [
        {"train": 9, "test": 1},
        {"train": 2, "test": 0},
        {"train": 7, "test": 0},
    ]
    assert [len(found.examples) for found in sheet.classes] == [6, 2, 6]
    for found, colour in zip(sheet.classes, (RED, GREEN, BLUE), strict=True):
        assert all(all_are(picture.pixels, colour) for picture in found.examples)
        assert all(all_are(pixels, colour) for pixels in found.versions)
        assert len(found.versions) == 6
    first = sheet.classes[0].examples
    assert (first[0].name, first[-1].name) == ("picture 0", "picture 8")
    assert (first[0].split, first[0].label) == ("train", "class 0")


def test_the_versions_are_the_ones_that_training_sees() -> None:
    augmentation = Augmentation(layers=1, magnitude=5.0)
    data = dataset([encoded(photo(seed, 60, 50)) for seed in range(4)], [0, 0, 0, 0], labels=("only",))
    sheet = sheet_of(scan({"train": data}), augmentation, image_size=(96, 96), seed=3)
    options = {"image_size": (96, 96), "channels": 3}
    stream = training_batches(data, batch=4, seed=3, augmentation=augmentation, stop_step=6, **options)
    for version in sheet.classes[0].versions:
        batch = next(stream)
        assert torch.equal(version, batch.images[batch.indices.tolist().index(0)])


def test_broken_pictures_are_left_out_and_empty_classes_do_not_stop_it() -> None:
    result = scan({"train": dataset([plain(RED), b"broken", plain(RED)], [0, 0, 0], labels=("a", "b"))})
    full, empty = sheet_of(result, Augmentation()).classes
    assert [picture.name for picture in full.examples] == ["picture 0", "picture 2"]
    assert (list(empty.examples), list(empty.versions)) == ([], [])


def test_of_many_classes_the_most_frequent_are_kept() -> None:
    targets = [at for at in range(60) for _ in range(3 if at >= 36 else 1)]
    sheet = sheet_of(scan({"train": dataset([plain(RED)] * len(targets), targets)}))
    assert (len(sheet.classes), sheet.total) == (MOST_CLASSES, 60)
    assert [found.label for found in sheet.classes] == [f"class {at}" for at in range(36, 60)]


def test_unlabelled_grey_and_many_channels_are_kept() -> None:
    for array in (np.full((9, 9), 77, dtype=np.uint8), np.full((9, 9, 5), 77, dtype=np.uint8)):
        channels = array.reshape(9, 9, -1).shape[2]
        result = scan({"all": dataset([array, array], [-1, -1], labels=(), channels=channels)})
        sheet = sheet_of(result, Augmentation())
        (found,) = sheet.classes
        assert (sheet.total, found.label, dict(found.counts)) == (0, None, {"all": 2})
        assert (found.examples[0].pixels == 77).all()


def test_pairs_carry_both_pictures_and_the_number_of_all() -> None:
    count = MOST_PAIRS + 3
    result = scan(
        {"train": dataset([plain(RED)] * count, [0] * count), "test": dataset([plain(BLUE)] * count, [0] * count)}
    )
    leaks = tuple(Twin(row=at, other=count + at, kind="near", similarity=0.99) for at in range(count))
    (found,) = sheet_of(result, findings=Findings(leaks=leaks, exact=(), near=(), conflicts=())).pairs
    assert (found.title, len(found.pairs), found.total) == ("Images that are also in a later split", MOST_PAIRS, count)
    for pair in found.pairs:
        assert (pair.first.split, pair.second.split, pair.kind, pair.similarity) == ("train", "test", "near", 0.99)
        assert all_are(pair.first.pixels, RED)
        assert all_are(pair.second.pixels, BLUE)


def test_large_pictures_are_kept_small_in_their_shape() -> None:
    result = scan({"train": dataset([plain(RED, 300, 600), plain(RED, 2, 2000)], [0, 0])})
    sheet = sheet_of(result, NO_AUGMENTATION, image_size=(1000, 500))
    sizes = [tuple(picture.pixels.shape[1:]) for picture in sheet.classes[0].examples]
    assert sizes == [(LARGEST // 2, LARGEST), (1, LARGEST)]
    assert {tuple(pixels.shape[1:]) for pixels in sheet.classes[0].versions} == {(LARGEST, LARGEST // 2)}


def test_an_augmentation_is_described_in_words() -> None:
    assert describe(Augmentation()) == "by a crop of 5% to 100% of the image, mirroring 50% of the time"
    assert describe(NO_AUGMENTATION) == "without a crop"
    everything = Augmentation(crop="pad", hue=0.1, layers=2, magnitude=9.0, erase=0.25)
    for word in ("shifting up to 4", "colours", "2 operations of magnitude 9", "erasing a box 25%"):
        assert word in describe(everything)
