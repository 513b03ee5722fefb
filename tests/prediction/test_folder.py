import os
from pathlib import Path

import pytest

from tests.data.making import picture, tree
from vitrail import ImageError, InputError
from vitrail.prediction.folder import Listing, list_images


def listed(*words: str | Path, stdin: bytes = b"") -> list[str]:
    found = list_images([str(word) for word in words], lambda: stdin)
    return [found.name(row) for row in range(len(found))]


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    names = ["b.png", "a.png", "notes.txt", "sub/c.JPG", "sub/deep/d.webp", ".hidden/e.png", "zoo/f.gif"]
    return tree(tmp_path / "photos", names).relative_to(tmp_path)


def test_a_folder_is_all_images_below_it_by_name(photos: Path) -> None:
    expected = ["a.png", "b.png", "sub/c.JPG", "sub/deep/d.webp", "zoo/f.gif"]
    assert listed(photos) == [f"photos/{name}" for name in expected]
    os.chdir(photos)
    assert listed(".") == expected


def test_words_keep_their_order_and_a_file_counts_once(photos: Path) -> None:
    words = [photos / "sub", photos / "b.png", photos, "./photos/../photos/a.png"]
    expected = ["sub/c.JPG", "sub/deep/d.webp", "b.png", "a.png", "zoo/f.gif"]
    assert listed(*words) == [f"photos/{name}" for name in expected]
    found = list_images([str(word) for word in words], bytes)
    assert found.notes == ("4 images were named more than once; each is answered once.",)


def test_a_named_file_is_taken_whatever_it_is_called(photos: Path) -> None:
    (photos / "photo.from.camera").write_bytes(picture(3))
    assert listed(photos / "photo.from.camera") == ["photos/photo.from.camera"]


@pytest.mark.usefixtures("photos")
def test_patterns_find_images_and_walk_folders() -> None:
    assert listed("photos/*.png") == ["photos/a.png", "photos/b.png"]
    assert listed("photos/s*") == ["photos/sub/c.JPG", "photos/sub/deep/d.webp"]
    assert listed("photos/**/*.[wg]*") == ["photos/sub/deep/d.webp", "photos/zoo/f.gif"]
    with pytest.raises(InputError, match=r"finds no images, only 1 others"):
        listed("photos/*.txt")
    with pytest.raises(InputError, match=r"finds no images, only 0 others"):
        listed("photos/*.tiff")


def test_a_name_with_wildcards_in_it_is_a_name_first(photos: Path) -> None:
    (photos / "x[1].png").write_bytes(picture(1))
    assert listed("photos/x[1].png") == ["photos/x[1].png"]


@pytest.mark.parametrize("form", ["photos/b.png\r\n\nphotos/a.png\r\n", "photos/b.png\0photos/a.png\0"])
def test_lists_come_from_a_file_or_from_stdin(form: str, photos: Path) -> None:
    expected = ["photos/b.png", "photos/a.png"]
    Path("list.txt").write_bytes(form.encode())
    assert listed("@list.txt") == expected
    assert listed("-", stdin=form.encode()) == expected
    assert listed("-", photos / "zoo", stdin=form.encode()) == [*expected, "photos/zoo/f.gif"]


def test_a_listed_file_that_is_missing_shows_when_it_is_read(photos: Path) -> None:
    found = list_images(["-"], lambda: b"photos/a.png\nnowhere.png\nphotos\n")
    assert found.read(0) == (photos / "a.png").read_bytes()
    with pytest.raises(ImageError, match="there is no such file"):
        found.read(1)
    with pytest.raises(ImageError, match="Is a directory"):
        found.read(2)


def test_links_that_lead_out_of_a_folder_are_not_followed_but_named_ones_are(photos: Path) -> None:
    Path("secret.png").write_bytes(picture(9))
    (photos / "link.png").symlink_to(Path("secret.png").resolve())
    (photos / "inner.png").symlink_to(Path("a.png"))
    (photos / "loop").symlink_to(photos.resolve())
    found = list_images([str(photos)], bytes)
    names = [found.name(row) for row in range(len(found))]
    assert "photos/link.png" not in names
    assert "photos/inner.png" in names
    assert "2 links were not followed" in found.notes[0]
    assert listed("photos/link.png") == ["photos/link.png"]
    assert listed("photos/[li]*.png", "photos/a.png") == ["photos/inner.png", "photos/a.png"]


def test_a_file_that_becomes_a_link_outwards_is_not_read(photos: Path) -> None:
    Path("secret.png").write_bytes(picture(9))
    found = list_images([str(photos)], bytes)
    (photos / "a.png").unlink()
    (photos / "a.png").symlink_to(Path("secret.png").resolve())
    with pytest.raises(ImageError, match="outside the given folder"):
        found.read(0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["photos/c.png"], "there is no such file. Did you mean"),
        (["https://example.com/x.jpg"], "nothing is fetched"),
        (["@nowhere.txt"], "nowhere.txt cannot be read: No such file"),
        (["-"], "stdin lists no files"),
        (["empty"], "empty holds no images"),
        (["text"], "text holds no images .but 1 other files such as text/x.txt"),
        (["pipe"], "neither a file nor a folder"),
        (["@empty.txt"], "empty.txt lists no files"),
    ],
)
@pytest.mark.usefixtures("photos")
def test_what_names_no_images_is_one_sentence(words: list[str], said: str) -> None:
    Path("empty").mkdir()
    tree(Path("text"), ["x.txt"])
    Path("empty.txt").touch()
    os.mkfifo("pipe")
    with pytest.raises(InputError, match=said):
        listed(*words)


def test_names_that_are_no_text_are_read(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xfe.png"
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(picture(1))
    found = list_images([str(tmp_path)], bytes)
    assert found.name(0).endswith("\\xff\\xfe.png")
    assert found.read(0) == picture(1)


def test_a_list_is_the_same_after_it_was_saved(photos: Path, tmp_path: Path) -> None:
    found = list_images([str(photos), "photos/../photos/notes.txt"], bytes)
    found.save(tmp_path / "files.index")
    again = Listing.open(tmp_path / "files.index")
    assert again.digest == found.digest
    assert [again.read(row) for row in range(len(again))] == [found.read(row) for row in range(len(found))]
    fewer = list_images([str(photos)], bytes)
    assert fewer.digest != found.digest


def test_a_list_is_a_regular_file_of_bounded_size(tmp_path, monkeypatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in ((tmp_path / "pipe", "is a pipe"), ("/dev/zero", "is a device"), (tmp_path / "none", "No such")):
        with pytest.raises(InputError, match=words):
            list_images([f"@{name}"], bytes)
    (tmp_path / "list").write_bytes(b"a.png\n" * 3)
    assert listed(f"@{tmp_path / 'list'}") == ["a.png"]
    monkeypatch.setenv("VITRAIL_LIMIT_LIST_BYTES", "17")
    with pytest.raises(InputError, match="VITRAIL_LIMIT_LIST_BYTES"):
        list_images([f"@{tmp_path / 'list'}"], bytes)
