import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

from tests.data.making import idx, picture, tar, tree
from vitrail import InputError
from vitrail.data import open as open_data


def make_idx(folder) -> None:
    idx(folder / "train-images-idx3-ubyte", np.zeros((4, 2, 3), np.uint8))
    idx(folder / "train-labels-idx1-ubyte", np.zeros(4, np.uint8))


def make_cifar(folder) -> None:
    (folder / "data_batch_1.bin").write_bytes(bytes(3073))
    (folder / "batches.meta.txt").write_text("airplane\nautomobile\n")


def make_flowers(folder) -> None:
    tree(folder, ["jpg/image_00001.jpg"])
    scipy.io.savemat(folder / "imagelabels.mat", {"labels": np.array([[1]])})
    scipy.io.savemat(folder / "setid.mat", {"trnid": np.array([[1]]), "valid": np.array([[]]), "tstid": np.array([[]])})


def make_pets(folder) -> None:
    tree(folder, ["images/Boxer_1.jpg"])
    (folder / "annotations").mkdir()
    (folder / "annotations/trainval.txt").write_text("Boxer_1 1 1 1\n")
    (folder / "annotations/test.txt").write_text("")


def make_tiny(folder) -> None:
    ids = ["n01443537", "n01629819"]
    tree(folder, [*(f"train/{wnid}/images/{wnid}_0.JPEG" for wnid in ids), "val/images/val_0.JPEG"])
    (folder / "wnids.txt").write_text("\n".join(reversed(ids)))
    (folder / "words.txt").write_text(f"{ids[0]}\tgoldfish, Carassius auratus\n")
    (folder / "val/val_annotations.txt").write_text(f"val_0.JPEG\t{ids[0]}\t0\t32\t44\t62\n")


def make_parquet(folder) -> None:
    pq.write_table(pa.table({"image": [picture()]}), folder / "x.parquet")


def make_shards(folder) -> None:
    tar(folder / "x.tar", {"a.png": picture(), "a.cls": b"0"})
    (folder / "labels.txt").write_text("cat\n")


def make_saved(folder) -> None:
    table = pa.table({"image": [picture()]})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')


FILES = [
    (make_idx, "train-images-idx3-ubyte"),
    (make_idx, "train-labels-idx1-ubyte"),
    (make_cifar, "data_batch_1.bin"),
    (make_cifar, "batches.meta.txt"),
    (make_flowers, "imagelabels.mat"),
    (make_flowers, "setid.mat"),
    (make_pets, "annotations/trainval.txt"),
    (make_tiny, "wnids.txt"),
    (make_tiny, "words.txt"),
    (make_tiny, "val/val_annotations.txt"),
    (make_parquet, "x.parquet"),
    (make_shards, "x.tar"),
    (make_shards, "labels.txt"),
    (make_saved, "state.json"),
    (make_saved, "data.arrow"),
]


def opened(folder) -> tuple[object, ...]:
    """What a folder was taken for, or nothing when it was refused."""
    try:
        data = open_data(folder)
    except InputError:
        return ()
    return type(data.pictures), data.labels, data.targets.tolist()


@pytest.mark.parametrize(("make", "name"), FILES)
def test_a_file_that_lies_elsewhere_is_not_read(tmp_path, make, name) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    make(folder)
    found = opened(folder)
    (folder / name).rename(tmp_path / "elsewhere")
    without = opened(folder)
    assert without != found
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert opened(folder) == without


@pytest.mark.parametrize(("make", "name"), FILES)
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path, make, name) -> None:
    make(tmp_path)
    (tmp_path / name).unlink()
    without = opened(tmp_path)
    os.mkfifo(tmp_path / name)
    assert opened(tmp_path) == without


def test_a_link_that_somebody_gives_by_name_is_followed(tmp_path) -> None:
    (tmp_path / "data").mkdir()
    make_idx(tmp_path / "data")
    (tmp_path / "link-train-images-idx3-ubyte").symlink_to(tmp_path / "data/train-images-idx3-ubyte")
    assert open_data(tmp_path / "link-train-images-idx3-ubyte").counts.tolist() == [4]


def test_a_link_to_a_folder_above_it_is_no_class(tmp_path) -> None:
    tree(tmp_path, ["a/1.png", "b/2.png"])
    (tmp_path / "b/up").symlink_to("..")
    (tmp_path / "again").symlink_to(".")
    data = open_data(tmp_path)
    assert (data.labels, len(data)) == (("a", "b"), 2)
    assert {reason for _, reason in data.ignored} == {"a link to a folder that contains it"}
