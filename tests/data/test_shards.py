import gzip
import io
import json
import os
import pickle
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.making import header, padded, picture, tar
from vitrail import InputError
from vitrail.base.errors import ImageError
from vitrail.data import open as open_data
from vitrail.data import open_splits
from vitrail.data.sources.patterns import expand
from vitrail.data.sources.tar import DamagedError, members

END = bytes(1024)


def sample(start: int, count: int = 3) -> dict[str, bytes]:
    return {
        f"{n:04d}.{end}": picture(n) if end == "jpg" else b"%d\n" % (n % 2)
        for n in range(start, start + count)
        for end in ("jpg", "cls")
    }


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.tar", ["a.tar"]),
        ("a-{8..11}.tar", ["a-8.tar", "a-9.tar", "a-10.tar", "a-11.tar"]),
        ("a-{008..010}.tar", ["a-008.tar", "a-009.tar", "a-010.tar"]),
        ("{x,y}/{0..1}.tar", ["x/0.tar", "x/1.tar", "y/0.tar", "y/1.tar"]),
        ("{one}", ["one"]),
    ],
)
def test_braces_are_written_out(pattern, names) -> None:
    assert expand(pattern) == names


@pytest.mark.parametrize("pattern", ["{5..1}", "{0..9999999}", "{0..9999}{0..9999}"])
def test_braces_that_count_down_or_too_far_are_refused(pattern) -> None:
    with pytest.raises(InputError):
        expand(pattern)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_lie_where_pythons_reader_says(tmp_path, form) -> None:
    long = "d" * 90 + "/" + "e" * 50 + "/" + ("f" * 200 if form != tarfile.USTAR_FORMAT else "f" * 60) + ".jpg"
    path = tar(tmp_path / "x.tar", {"a.jpg": b"1" * 700, long: b"2" * 512, "é/猫.cls": b"", "b.txt": b"3"}, form=form)
    with tarfile.open(path) as archive:
        expected = [(info.name, info.offset_data, info.size, None) for info in archive]
    with path.open("rb") as file:
        assert list(members(file.fileno())) == expected


def test_images_and_labels_of_shards_in_order(tmp_path) -> None:
    for number in range(3):
        tar(tmp_path / f"data-{number:06d}.tar", sample(3 * number))
    for where in (tmp_path / "data-{000000..000002}.tar", tmp_path / "data-*.tar", tmp_path):
        data = open_data(where)
        assert len(data) == 9
        assert data.labels == ("0", "1")
        assert data.targets.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]
        assert [data.read(index) for index in range(9)] == [picture(n) for n in range(9)]
        assert data.name(4) == f"{tmp_path}/data-000001.tar:0004.jpg"
    assert len(open_data(tmp_path / "data-000001.tar")) == 3


def test_labels_are_numbers_names_or_json(tmp_path) -> None:
    files = {
        "a.jpg": picture(0),
        "a.txt": " Größe \nmore".encode(),
        "b.png": picture(1),
        "b.json": json.dumps({"label": "cat", "x": [1]}).encode(),
        "c.webp": picture(2),
        "c.json": b'{"caption": "none"}',
        "d.seg.png": picture(3),
        "d.jpg": picture(4),
        "d.txt": b"cat",
        "d.json": b'{"label": "dog"}',
    }
    data = open_data(tar(tmp_path / "x.tar", files))
    assert data.labels == ("Größe", "cat", "dog")
    assert data.targets.tolist() == [0, 1, -1, 2]
    assert any("1 members" in note for note in data.notes)


def test_members_of_a_key_may_come_in_any_order(tmp_path) -> None:
    data = open_data(tar(tmp_path / "x.tar", {"a.cls": b"1", "b.cls": b"0", "b.jpg": picture(1), "a.jpg": picture(0)}))
    assert data.targets.tolist() == [0, 1]


def test_splits_are_in_the_names_or_the_folders(tmp_path) -> None:
    for name in ("train-0.tar", "train-1.tar", "val_0.tar"):
        tar(tmp_path / "names" / name, sample(0))
    for name in ("training/0.tar", "test/0.tar"):
        tar(tmp_path / "folders" / name, sample(0))
    assert {name: len(data) for name, data in open_splits(tmp_path / "names").items()} == {"train": 6, "val": 3}
    assert {name: len(data) for name, data in open_splits(tmp_path / "folders").items()} == {"train": 3, "test": 3}


def test_a_list_of_classes_beside_the_shards_names_them(tmp_path) -> None:
    tar(tmp_path / "x.tar", sample(0))
    (tmp_path / "classes.txt").write_text("cat\ndog\nmouse\n")
    data = open_data(tmp_path)
    assert data.labels == ("cat", "dog", "mouse")
    assert any("mouse" in note for note in data.notes)
    (tmp_path / "classes.txt").write_text("cat\n")
    with pytest.raises(InputError, match="label 1, but its list of classes names 1"):
        open_data(tmp_path)


def test_a_name_that_the_list_of_classes_lacks_is_refused(tmp_path) -> None:
    tar(tmp_path / "x.tar", {"a.jpg": picture(), "a.txt": b"owl", "b.jpg": picture(), "b.txt": b"cat"})
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    with pytest.raises(InputError, match="'owl'"):
        open_data(tmp_path)


def test_hostile_members_are_counted_and_never_opened(tmp_path) -> None:
    link = tarfile.TarInfo("link.jpg")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
    hard = tarfile.TarInfo("hard.jpg")
    hard.type, hard.linkname = tarfile.LNKTYPE, "a.jpg"
    device = tarfile.TarInfo("device.jpg")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 5
    pipe = tarfile.TarInfo("pipe.jpg")
    pipe.type = tarfile.FIFOTYPE
    folder = tarfile.TarInfo("folder.jpg")
    folder.type = tarfile.DIRTYPE
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for info in (link, hard, device, pipe, folder):
            archive.addfile(info)
        for name, content in {
            "/etc/abs.jpg": picture(),
            "../up.jpg": picture(),
            "a/../../up.jpg": picture(),
            "win\\..\\up.jpg": picture(),
            "bomb.pkl": pickle.dumps(print),
            "bomb.x.pickle": b"",
            "bomb.pth": b"",
            "a.jpg": picture(7),
            "a.cls": b"0",
        }.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    data = open_data(tmp_path / "x.tar")
    assert len(data) == 1
    assert data.read(0) == picture(7)
    reasons = [reason for _, reason in data.ignored]
    assert len(reasons) == 11
    assert sum("no plain file" in reason for reason in reasons) == 4
    assert sum("out of the shard" in reason for reason in reasons) == 4
    assert sum("pickle" in reason for reason in reasons) == 3


def test_a_sparse_file_is_left_alone_and_what_follows_is_found(tmp_path) -> None:
    sparse = bytearray(header("s.jpg", size=512, kind=b"S", magic=b"ustar  \0"))
    sparse[482] = 1
    sparse[148:156] = b" " * 8
    sparse[148:156] = b"%06o\0 " % sum(sparse)
    more = bytearray(512)
    content = bytes(sparse) + bytes(more) + padded(b"x" * 512) + header("a.jpg", size=3) + padded(b"abc") + END
    (tmp_path / "x.tar").write_bytes(content)
    data = open_data(tmp_path / "x.tar")
    assert (len(data), data.read(0)) == (1, b"abc")
    assert data.ignored == ((f"{tmp_path}/x.tar:s.jpg", "a sparse file, no plain file"),)


def test_twice_the_same_name_is_a_counted_skip_and_the_first_wins(tmp_path) -> None:
    content = (
        header("a.jpg", size=3)
        + padded(b"one")
        + header("a.jpg", size=3)
        + padded(b"two")
        + header("a.png", size=1)
        + padded(b"3")
    )
    (tmp_path / "x.tar").write_bytes(content + END)
    with pytest.raises(InputError, match=r"2 of 3 images .*already has a\.jpg"):
        open_data(tmp_path / "x.tar")
    data = open_data(tmp_path / "x.tar", skip_broken="2")
    assert (len(data), data.read(0)) == (1, b"one")


@pytest.mark.parametrize(
    ("keep", "images", "message"),
    [
        (700, 1, "cut off inside b.jpg"),
        (1300, 2, "the zeros that end a tar file are missing"),  # in the padding of b.jpg
        (1536, 2, "the zeros that end a tar file are missing"),  # right behind it: what else there was, nobody knows
    ],
)
def test_a_shard_that_is_cut_off_is_named(tmp_path, keep, images, message) -> None:
    content = header("a.jpg", size=100) + padded(b"1" * 100) + header("b.jpg", size=600) + padded(b"2" * 600) + END
    (tmp_path / "x.tar").write_bytes(content[: 1024 + keep])
    with pytest.raises(InputError, match=rf"x\.tar \(it is .*{message}"):
        open_data(tmp_path / "x.tar")
    assert len(open_data(tmp_path / "x.tar", skip_broken="1")) == images


def test_a_shard_that_becomes_shorter_is_said_when_it_is_read(tmp_path) -> None:
    path = tar(tmp_path / "x.tar", sample(0))
    data = open_data(path)
    os.truncate(path, 600)
    with pytest.raises(ImageError, match="has become shorter"):
        data.image(2)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.cls": b"cat"}, "not a class number"),
        ({"a.cls": b"-1"}, "not a class number"),
        ({"a.cls": b"1" * 100}, "too many for a label"),
        ({"a.cls": b"\xff"}, "not text"),
        ({"a.json": b"{"}, "not JSON"),
        ({"a.json": b'{"label": [1]}'}, "neither a number nor a name"),
        ({"a.json": b"[" * 100_000}, "not JSON"),
    ],
)
def test_a_broken_label_takes_its_image_out(tmp_path, files, message) -> None:
    path = tar(tmp_path / "x.tar", {"a.jpg": picture(), **files, "b.jpg": picture(), "b.txt": b"0"})
    with pytest.raises(InputError, match=message):
        open_data(path)
    assert open_data(path, skip_broken="50%").name(0).endswith("b.jpg")


def test_a_label_out_of_range_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="label 5000000"):
        open_data(tar(tmp_path / "x.tar", {"a.jpg": picture(), "a.cls": b"5000000"}))


def test_missing_shards_of_a_range_are_named(tmp_path) -> None:
    tar(tmp_path / "x-0.tar", sample(0))
    with pytest.raises(InputError, match=r"names 2 tar files that are not there, such as .*x-1\.tar; 1 are there"):
        open_data(tmp_path / "x-{0..2}.tar")
    with pytest.raises(InputError, match="no tar file is called"):
        open_data(tmp_path / "y-*.tar")


def test_a_tar_without_images_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="has no images"):
        open_data(tar(tmp_path / "x.tar", {"readme.md": b"x"}))
    (tmp_path / "y.tar").write_bytes(b"")
    with pytest.raises(InputError, match="cut off after 0 bytes"):
        open_data(tmp_path / "y.tar")
    (tmp_path / "z.tar").write_bytes(gzip.compress(bytes(1024)))
    with pytest.raises(InputError, match="it is compressed"):
        open_data(tmp_path / "z.tar")
    (tmp_path / "w.tar").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(InputError, match="no header of a member at byte 0"):
        open_data(tmp_path / "w.tar")


def test_a_folder_or_a_pipe_called_tar_is_no_shard(tmp_path) -> None:
    tar(tmp_path / "a.tar", sample(0))
    (tmp_path / "b.tar").mkdir()
    os.mkfifo(tmp_path / "c.tar")
    assert len(open_data(tmp_path)) == 3


def test_two_classes_of_one_name_stay_two(tmp_path) -> None:
    tar(tmp_path / "a.tar", sample(0, 4))
    (tmp_path / "labels.txt").write_text("crane\ncrane\n")
    data = open_data(tmp_path)
    assert data.labels == ("crane", "crane")
    assert data.targets.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("where", ["pipe:cat x.tar", "http://host/x.tar", "s3://bucket/{0..3}.tar"])
def test_nothing_is_run_or_fetched(where) -> None:
    with pytest.raises(InputError, match="nothing is fetched or run"):
        open_data(where)


def test_shards_are_read_in_other_processes(tmp_path) -> None:
    data = open_data(tar(tmp_path / "x.tar", sample(0)))
    data.read(0)
    other = pickle.loads(pickle.dumps(data.pictures))  # noqa: S301
    assert other.read(1) == picture(1)
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, data.read(2))
        os._exit(0)
    os.wait()
    assert os.read(read, 10_000) == picture(2)
    for handle in (read, write):
        os.close(handle)


@given(st.data())
def test_mutated_shards_are_read_or_refused_in_a_sentence(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.tar"
    long = "long/" * 60 + "x.jpg"
    tar(
        path,
        {**sample(0), long: picture(9), "z.json": b'{"label": "a"}'},
        form=data.draw(st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])),
    )
    whole = bytearray(path.read_bytes()[:10_240]) if data.draw(st.booleans()) else bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        block = 512 * data.draw(st.integers(0, len(whole) // 512 - 1))
        whole[block + data.draw(st.integers(0, 511))] = data.draw(st.integers(0, 255))
        whole[block + 148 : block + 156] = b" " * 8
        whole[block + 148 : block + 156] = b"%06o\0 " % sum(whole[block : block + 512])
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    try:
        found = open_data(path, skip_broken="100%")
        for index in range(len(found)):
            assert len(found.read(index)) <= len(whole)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_a_huge_claimed_name_is_not_read_into_memory(tmp_path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(header("long", size=1 << 30, kind=b"L") + END)
    with path.open("rb") as file, pytest.raises(DamagedError, match="a name of 1073741824 bytes"):
        list(members(file.fileno()))
