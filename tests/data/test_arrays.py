import gzip
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.data.making import idx
from vitrail import InputError
from vitrail.data import open as open_data
from vitrail.data import open_splits
from vitrail.data.sources.arrays import to_images


def pixels(*shape: int) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) % 251).astype(np.uint8).reshape(shape)


def test_an_npz_has_its_splits_and_labels(tmp_path) -> None:
    given_arrays = {
        "x_train": pixels(6, 4, 5, 3),
        "y_train": np.array([0, 1, 2, 0, 1, 2]),
        "x_test": pixels(2, 4, 5, 3),
        "y_test": np.array([[2], [0]]),
    }
    np.savez_compressed(tmp_path / "x.npz", **given_arrays)
    splits = open_splits(tmp_path / "x.npz")
    assert {name: len(data) for name, data in splits.items()} == {"train": 6, "test": 2}
    assert splits["test"].labels == ("0", "1", "2")
    assert splits["test"].targets.tolist() == [2, 0]
    assert splits["test"].name(1) == f"{tmp_path}/x.npz:x_test[1]"
    np.testing.assert_array_equal(splits["train"].read(5), given_arrays["x_train"][5])
    np.testing.assert_array_equal(splits["test"].image(1).numpy(), given_arrays["x_test"][1].transpose(2, 0, 1))


@pytest.mark.parametrize(("images", "labels"), [("x", "y"), ("images", "labels"), ("train_images", "train_labels")])
def test_one_pile_of_arrays_is_split_by_the_seed(tmp_path, images, labels) -> None:
    np.savez(tmp_path / "x.npz", **{images: pixels(40, 3, 3), labels: np.arange(40) % 2})
    train, val = (open_data(tmp_path / "x.npz", split=split, val_fraction=0.25) for split in ("train", "val"))
    assert (len(train), len(val), train.channels) == (30, 10, 1)
    assert val.counts.tolist() == [5, 5]
    assert set(train.rows) | set(val.rows) == set(range(40))
    assert open_data(tmp_path / "x.npz", split="val", seed=1, val_fraction=0.25).rows.tolist() != val.rows.tolist()


@pytest.mark.parametrize("key", ["class_names", "label_names"])
def test_class_names_in_the_file_are_used(tmp_path, key) -> None:
    np.savez(tmp_path / "x.npz", x=pixels(2, 3, 3), y=np.array([0, 1]), **{key: np.array(["Größe", "b", "never"])})
    data = open_data(tmp_path / "x.npz")
    assert data.labels == ("Größe", "b", "never")
    assert any("never" in note for note in data.notes)


def test_class_names_that_are_not_letters_are_refused(tmp_path) -> None:
    names = np.array([2**31 - 1, 2**31 - 1], np.uint32).view("<U1")
    np.savez(tmp_path / "x.npz", x=pixels(2, 3, 3), y=np.array([0, 1]), class_names=names)
    with pytest.raises(InputError, match=r"class names of .* are not text"):
        open_data(tmp_path / "x.npz")


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=3, max_dims=4, min_side=1, max_side=9)))
def test_axes_are_brought_into_one_order(array) -> None:
    found = to_images(array, "x")
    assert found.ndim == 4
    if array.ndim == 3:
        np.testing.assert_array_equal(found[..., 0], array)
    elif array.shape[3] <= 4 or array.shape[1] > 4:
        np.testing.assert_array_equal(found, array)
    else:
        np.testing.assert_array_equal(found, array.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([0.0, 0.5, 1.0]), [0, 128, 255]),
        (np.array([0.0, 0.4, 254.6]), [0, 0, 255]),
        (np.array([0, 7, 255], np.int64), [0, 7, 255]),
        (np.array([0, 1, 1], np.uint16), [0, 1, 1]),
        (np.array([False, True, True]), [0, 255, 255]),
        (np.array([0.0, 0.25, 1.0], np.float16), [0, 64, 255]),
    ],
)
def test_numbers_are_brought_to_bytes_by_the_written_rule(array, expected) -> None:
    assert to_images(array.reshape(1, 1, 3), "x").reshape(-1).tolist() == expected


@pytest.mark.parametrize("values", [[-1.0, 0.0], [0.0, 256.0], [0.0, float("nan")], [0.0, float("inf")], [1j, 0]])
def test_numbers_that_are_no_pixels_are_refused(values) -> None:
    with pytest.raises(InputError, match=r"pixels are|images are numbers"):
        to_images(np.array(values).reshape(1, 1, 2), "x")


@pytest.mark.parametrize("shape", [(5,), (5, 784), (2, 100, 100, 100), (2, 2, 2, 2, 2), (3, 0, 4, 1)])
def test_shapes_that_are_no_images_are_refused(shape) -> None:
    with pytest.raises(InputError, match="shape"):
        to_images(np.zeros(shape, np.uint8), "x")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a": pixels(2, 3, 3)}, "has the arrays a, but"),
        ({"x": pixels(2, 3, 3), "y": np.array([0, 1, 2])}, "2 images but 3 labels"),
        ({"x": pixels(2, 3, 3), "y": np.array([0.0, 1.0])}, "one whole number"),
        ({"x": pixels(2, 3, 3), "y": np.array([0, -2])}, "label -2"),
        ({"x": pixels(2, 3, 3), "y": np.array([0, 5]), "class_names": np.array(["a", "b"])}, "label 5"),
        ({"x": pixels(2, 3, 3), "y": np.array([0, 2**40])}, "label 1099511627776"),
        ({"x": pixels(2, 3, 3), "y": np.array([0, 2**64 - 1], np.uint64)}, "label 18446744073709551615"),
        ({"x": pixels(2, 3, 3), "y": np.array([0, 1]), "class_names": np.array([1, 2])}, "text is needed"),
        ({"x": pixels(0, 3, 3), "y": np.array([], int)}, "empty"),
        ({"x_train": pixels(2, 3, 3), "x_test": pixels(2, 3, 3, 3)}, "1 and 3 channels"),
        ({"x": np.array([object()])}, "holds object"),
        ({"x": np.zeros(3, [("a", int)])}, "plain numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(tmp_path, members, message) -> None:
    np.savez(tmp_path / "x.npz", **members)
    with pytest.raises(InputError, match=message):
        open_data(tmp_path / "x.npz")


def test_a_class_that_only_the_test_split_has_is_refused(tmp_path) -> None:
    np.savez(
        tmp_path / "x.npz",
        x_train=pixels(2, 3, 3),
        y_train=np.array([0, 1]),
        x_test=pixels(1, 3, 3),
        y_test=np.array([2]),
    )
    with pytest.raises(InputError, match=r"1 images of 1 classes that are not among the 2 known ones: 2\."):
        open_data(tmp_path / "x.npz", split="test")


@pytest.mark.parametrize("name", ["x", "class_names"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, name) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_UNPACKED_BYTES", "1000000")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (40, 1000, 1000)})
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(f"{name}.npy", "w", force_zip64=True) as file,
    ):
        file.write(header.getvalue())
        for _ in range(40):
            file.write(bytes(1_000_000))
    if name != "x":
        with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive, archive.open("x.npy", "w") as file:
            np.save(file, pixels(2, 3, 3))
    tracemalloc.start()
    with pytest.raises(InputError, match="more than 100 times as much"):
        open_data(tmp_path / "x.npz")
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_a_header_that_lies_about_its_size_is_refused_without_the_memory(tmp_path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 28, 28)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(100))
    with pytest.raises(InputError, match="cut off"):
        open_data(tmp_path / "x.npz")


@given(st.data())
def test_a_mutated_npz_is_read_or_refused_in_a_sentence(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.npz"
    np.savez_compressed(path, x=pixels(3, 4, 4), y=np.array([0, 1, 0]))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    try:
        open_data(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(("front", "mark"), [("", "-"), ("emnist-letters-", "-"), ("", ".")])
def test_idx_files_plain_or_packed(tmp_path, end, front, mark) -> None:
    train, test = pixels(5, 4, 3), pixels(2, 4, 3)
    for split, images, labels in (("train", train, [0, 1, 2, 1, 0]), ("t10k", test, [2, 2])):
        idx(tmp_path / f"{front}{split}-images{mark}idx3-ubyte{end}", images)
        idx(tmp_path / f"{front}{split}-labels{mark}idx1-ubyte{end}", np.array(labels, np.uint8))
    for where in (tmp_path, tmp_path / f"{front}t10k-images{mark}idx3-ubyte{end}"):
        splits = open_splits(where)
        assert {name: data.targets.tolist() for name, data in splits.items()} == {
            "train": [0, 1, 2, 1, 0],
            "test": [2, 2],
        }
        np.testing.assert_array_equal(splits["train"].read(3)[..., 0], train[3])
    assert any("has no images of 2 of 3 classes" in note for note in splits["test"].notes)


def test_fashion_mnist_has_its_class_names(tmp_path) -> None:
    folder = tmp_path / "Fashion-MNIST"
    folder.mkdir()
    idx(folder / "train-images-idx3-ubyte", pixels(2, 4, 3))
    idx(folder / "train-labels-idx1-ubyte", np.array([0, 9], np.uint8))
    data = open_data(folder)
    assert [data.labels[target] for target in data.targets] == ["T-shirt/top", "Ankle boot"]


def test_a_packed_idx_file_that_claims_far_more_than_it_is_is_refused_before_it_is_unpacked(tmp_path) -> None:
    header = bytes([0, 0, 8, 3]) + struct.pack(">3I", 75_000, 200, 200)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(header + bytes(10**6)))
    idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(75_000, np.uint8))
    with pytest.raises(InputError, match=r"unpack.*VITRAIL_LIMIT_"):
        open_data(tmp_path)


def test_several_idx_data_sets_in_one_folder_have_to_be_chosen_from(tmp_path) -> None:
    for front in ("emnist-letters-", "emnist-digits-"):
        idx(tmp_path / f"{front}train-images-idx3-ubyte", pixels(2, 4, 3))
    with pytest.raises(InputError, match="emnist-digits-train-images-idx3-ubyte, emnist-letters"):
        open_data(tmp_path)
    assert len(open_data(tmp_path / "emnist-letters-train-images-idx3-ubyte")) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file"),
        (b"\0\0\x0d\x03" + struct.pack(">3I", 1, 2, 2) + bytes(4), "not an idx file of bytes"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2, 2, 2) + bytes(7), "but has only 7"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2, 2, 2) + bytes(9), "but has more"),
        (b"\0\0\x08\x03" + struct.pack(">3I", 2**31, 2**31, 2**31), "but has only 0"),
    ],
)
def test_idx_files_whose_header_does_not_fit_are_refused(tmp_path, content, message) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_data(tmp_path)


def test_a_broken_gz_is_refused(tmp_path) -> None:
    path = idx(tmp_path / "train-images-idx3-ubyte.gz", pixels(50, 20, 20))
    for content in (path.read_bytes()[:-20], b"not packed at all", path.read_bytes()[:30]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"cannot be read|no idx"):
            open_data(tmp_path)


def cifar(path, labels: list[tuple[int, ...]]) -> None:
    path.write_bytes(b"".join(bytes(label) + pixels(3, 32, 32).tobytes() for label in labels))


def test_cifar_10_as_published(tmp_path) -> None:
    for number in range(1, 6):
        cifar(tmp_path / f"data_batch_{number}.bin", [(number,), (0,)])
    cifar(tmp_path / "test_batch.bin", [(9,)])
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    (tmp_path / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    splits = open_splits(tmp_path)
    assert splits["train"].targets.tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]
    assert splits["test"].targets.tolist() == [9]
    assert splits["test"].labels == tuple(names)
    np.testing.assert_array_equal(splits["train"].image(4).numpy(), pixels(3, 32, 32))


def test_cifar_100_uses_the_fine_labels(tmp_path) -> None:
    cifar(tmp_path / "train.bin", [(4, 1), (3, 0)])
    cifar(tmp_path / "test.bin", [(3, 0)])
    (tmp_path / "fine_label_names.txt").write_text("apple\naquarium_fish\n")
    data = open_data(tmp_path, split="train")
    assert (data.labels, data.targets.tolist()) == (("apple", "aquarium_fish"), [1, 0])


def test_cifar_that_is_cut_off_or_mislabelled_or_pickled_is_refused(tmp_path) -> None:
    cifar(tmp_path / "data_batch_1.bin", [(3,)])
    (tmp_path / "batches.meta.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="label 3"):
        open_data(tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(bytes(3000))
    with pytest.raises(InputError, match="cut off"):
        open_data(tmp_path)
    (tmp_path / "data_batch_1.bin").rename(tmp_path / "data_batch_1")
    with pytest.raises(InputError, match="binary version"):
        open_data(tmp_path)
