import math
import threading

import numpy as np
import pytest
from PIL import Image

from tests.data.pictures import dataset, encoded, photo
from vitrail.data.survey.leaks import Twin, find, left_out
from vitrail.data.survey.scan import BLOCK, read_facts, scan
from vitrail.data.survey.summary import imbalance, spread, summarise

JPEG = encoded(photo(1), "JPEG", quality=95)
GREY = encoded(photo(2, 50, 70).convert("L"))


def test_one_look_tells_what_is_in_a_file() -> None:
    look = read_facts(dataset([JPEG], [0]), 0)
    assert (look.format, look.mode, look.height, look.width, look.bytes, look.error) == (
        "JPEG",
        "RGB",
        120,
        160,
        len(JPEG),
        None,
    )


def test_a_file_on_its_side_is_measured_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    look = read_facts(dataset([encoded(photo(1), "JPEG", exif=exif)], [0]), 0)
    assert (look.height, look.width) == (160, 120)


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB"), (5, "5 channels")])
def test_one_look_tells_what_is_in_an_array(channels, mode) -> None:
    array = np.zeros((4, 6, channels), dtype=np.uint8)
    look = read_facts(dataset([array], [0]), 0)
    assert (look.format, look.mode, look.height, look.width, look.bytes) == ("array", mode, 4, 6, 24 * channels)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (JPEG[: len(JPEG) // 2], "broken or truncated"),
        (GREY[:100], "broken or truncated"),
        (b"", "empty"),
        (b"words", "not a JPEG, PNG"),
        ("input/output error", "could not be read: input/output error"),
    ],
)
def test_what_cannot_be_read_becomes_a_sentence_and_not_the_end(found, reason) -> None:
    result = scan({"train": dataset([JPEG, found, GREY], [0, 0, 1])})
    assert list(result.errors) == [1]
    assert reason in result.errors[1]
    np.testing.assert_array_equal(result.readable, [True, False, True])
    np.testing.assert_array_equal(result.heights, [120, 0, 70])


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_images_come_in_order_however_many_threads_read(workers) -> None:
    arrays = [np.full((1 + at % 7, 1 + at % 5), at % 251, dtype=np.uint8) for at in range(3 * BLOCK + 5)]
    splits = {"train": dataset(arrays[:70], [0] * 70), "test": dataset(arrays[70:], [0] * (len(arrays) - 70))}
    result = scan(splits, workers=workers)
    np.testing.assert_array_equal(result.heights, [array.shape[0] for array in arrays])
    np.testing.assert_array_equal(result.widths, [array.shape[1] for array in arrays])
    np.testing.assert_array_equal(result.part, [0] * 70 + [1] * (len(arrays) - 70))
    assert (result.split(69), result.split(70)) == ("train", "test")
    assert (result.name(69), result.name(70)) == ("picture 69", "picture 0")
    np.testing.assert_array_equal(result.image(71).numpy()[0], arrays[71])


def test_progress_sees_every_image() -> None:
    told = []

    def listen(steps, *, total, title):
        for number, step in enumerate(steps):
            yield step
            told.append((number, total, title))

    scan({"train": dataset([GREY] * 40, [0] * 40)}, progress=listen)
    assert [number for number, _, _ in told] == list(range(40))
    assert {(total, title) for _, total, title in told} == {(40, "reading images")}


def test_no_thread_goes_on_after_an_interruption() -> None:
    def stop(steps, *, total, title):  # noqa: ARG001
        for number, step in enumerate(steps):
            if number == 3:
                raise KeyboardInterrupt
            yield step

    with pytest.raises(KeyboardInterrupt):
        scan({"train": dataset([JPEG] * 400, [0] * 400)}, progress=stop, workers=3)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("survey")]


def _planted():
    """In training 1 is broken, 2 and 3 are the same, 4 and 5 in the test (exactly, nearly), 6 and 7 in two classes."""
    shots = {name: photo(seed, 180, 160) for seed, name in enumerate("abcdefgh")}
    files = {name: encoded(shot) for name, shot in shots.items()}
    again = encoded(shots["e"].resize((90, 80)), "JPEG", quality=70)
    train = [files["a"], files["b"][:300], files["c"], files["c"], files["d"], again, files["f"], files["f"]]
    test = [files["g"], encoded(shots["d"], "BMP"), files["e"], files["g"]]
    names = ("cat", "dog")
    return {
        "train": dataset(train, [0, 0, 1, 1, 0, 0, 0, 1], labels=names, split="train"),
        "test": dataset(
            test, [1, 0, 0, 1], labels=names, split="test", skipped=(("x.png", "it is not a plain file."),)
        ),
    }


def test_what_is_there_twice_is_found_in_its_place() -> None:
    result = scan(_planted())
    found = find(result)
    assert found.leaks[0] == Twin(row=4, other=9, kind="exact", similarity=1.0)  # another format, the same pixels
    assert (found.leaks[1].row, found.leaks[1].other, found.leaks[1].kind) == (5, 10, "near")
    assert len(found.leaks) == 2
    assert found.exact == ((2, 3), (6, 7), (8, 11))
    assert found.conflicts == ((6, 7),)
    assert found.near == ()
    assert [leak.kind for leak in find(result, bits=None).leaks] == ["exact"]


def test_a_clean_data_set_leaves_out_the_training_copy_and_keeps_the_test_whole() -> None:
    result = scan(_planted())
    reasons = left_out(result, find(result))
    assert list(reasons) == [1, 3, 4, 5, 6, 7]
    assert reasons[1].startswith("it cannot be read: ")
    assert reasons[3] == "the same pixels as picture 2, which stays"
    assert reasons[4] == "the same pixels as picture 1 in test"
    assert reasons[5] == "nearly the same as picture 2 in test"
    assert reasons[6] == reasons[7] == "the same pixels are in 2 classes"


def test_validation_gives_way_to_the_test_and_other_splits_to_validation() -> None:
    scene = encoded(photo(3, 60, 60))
    splits = {name: dataset([scene], [0], split=name) for name in ("test", "extra", "val", "train")}
    result = scan(splits)
    assert {result.split(leak.row): result.split(leak.other) for leak in find(result).leaks} == {
        "train": "test",
        "val": "test",
        "extra": "test",
    }
    del splits["test"]
    result = scan(splits)
    assert {result.split(leak.row): result.split(leak.other) for leak in find(result).leaks} == {
        "train": "val",
        "extra": "val",
    }


def test_a_thousand_blank_images_are_copies_and_not_a_million_pairs() -> None:
    blank = np.full((8, 8), 200, dtype=np.uint8)
    result = scan({"train": dataset([blank] * 1000, [0] * 1000)})
    found = find(result)
    assert [len(group) for group in found.exact] == [1000]
    assert found.near == ()
    assert len(left_out(result, found)) == 999


def test_unlabelled_copies_are_no_conflict() -> None:
    result = scan({"train": dataset([JPEG, JPEG, JPEG], [-1, 0, -1], labels=("a",))})
    assert find(result).conflicts == ()
    assert len(find(result).exact) == 1


def test_the_summary_counts_everything() -> None:
    result = scan(_planted())
    report = summarise(result, find(result))
    assert (report["images"], report["classes"]) == (12, ["cat", "dog"])
    assert report["splits"]["train"]["counts"] == [5, 3]
    assert report["splits"]["train"]["unreadable"] == 1
    assert report["splits"]["test"]["counts"] == [2, 2]
    assert report["formats"] == {"PNG": 9, "JPEG": 1, "BMP": 1}
    assert report["modes"] == {"RGB": 11}
    assert report["width"] == {"min": 90.0, "median": 180.0, "max": 180.0}
    assert report["aspect"] == {"min": 1.125, "median": 1.125, "max": 1.125}
    assert report["skipped"] == [{"name": "x.png", "reason": "it is not a plain file."}]
    assert [found["name"] for found in report["unreadable"]] == ["picture 1"]
    assert report["leaks"][0]["image"] == {"split": "train", "name": "picture 4", "class": "cat"}
    assert report["leaks"][0]["other"] == {"split": "test", "name": "picture 1", "class": "cat"}


def test_imbalance_is_a_ratio_and_a_number_of_equal_classes() -> None:
    assert imbalance(np.array([5, 5, 5, 5])) == {"ratio": 1.0, "effective": 4.0}
    found = imbalance(np.array([90, 10, 0]))
    assert found["ratio"] == 9.0
    assert found["effective"] == pytest.approx(0.9**-0.9 * 0.1**-0.1, abs=1e-4)
    assert imbalance(np.array([0, 0])) is None
    assert math.isclose(imbalance(np.array([7]))["effective"], 1.0)


def test_a_spread_of_nothing_is_nothing() -> None:
    assert spread(np.array([])) is None
    assert spread(np.array([3, 1, 2])) == {"min": 1.0, "median": 2.0, "max": 3.0}


def test_data_of_which_nothing_can_be_read_is_surveyed_too() -> None:
    result = scan({"train": dataset([b"", b"x"], [0, 1])})
    report = summarise(result, find(result))
    assert report["width"] is None
    assert report["formats"] == {}
    assert len(report["unreadable"]) == 2
