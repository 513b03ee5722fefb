"""Patterns of files: as Python's glob, but nothing is left out without a word."""

import glob
import os
from pathlib import Path

import pytest

from tests.data.making import picture, tar, tree
from vitrail import InputError
from vitrail.data import open as open_data
from vitrail.data.sources.patterns import matching
from vitrail.prediction.folder import list_images

PATTERNS = [
    *("*", "*.jpg", "*/*.jpg", "**/*.jpg", "a/**", "**", "a/*/2.jpg", "*/.5.jpg", "a/.*/*", "[ad]/?.*", "x/*"),
    *("note.txt/*", "nowhere*", "round*", "d/6.pn[g]", "*/nothing", "a/b/../*.jpg", "./*.jpg"),
]
NAMES = ["a/1.jpg", "a/b/2.jpg", "a/b/c/3.jpg", "a/.hidden/4.jpg", "a/.5.jpg", "d/6.png", "7.jpg", "note.txt"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tree(tmp_path, NAMES))
    (tmp_path / "nowhere.jpg").symlink_to("missing")
    (tmp_path / "round.jpg").symlink_to("round.jpg")
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_fits_what_glob_says(pattern, here) -> None:
    for place in (pattern, str(here / pattern)):
        wanted = {os.path.normpath(name) if ".." not in name else name for name in glob.glob(place, recursive=True)}  # noqa: PTH207
        assert {os.path.normpath(name) if ".." not in name else name for name in matching(place)} == wanted


def test_links_to_folders_are_followed_once(here) -> None:
    (here / "a" / "loop").symlink_to("..")
    (here / "again").symlink_to("a")
    assert len(matching("**/2.jpg")) == 1


def refusing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder one that may not be listed, whoever runs the tests."""
    listdir, scandir = os.listdir, os.scandir

    def check(path: str | bytes) -> None:
        if os.path.realpath(os.fsdecode(path)) == str(folder):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", lambda path=".": check(path) or listdir(path))
    monkeypatch.setattr(os, "scandir", lambda path=".": check(path) or scandir(path))


@pytest.mark.parametrize("pattern", ["*/*.jpg", "**/*.jpg", "*"])
def test_a_folder_that_may_not_be_listed_is_named_and_not_left_out(pattern, here, monkeypatch) -> None:
    refusing(here / "d", monkeypatch)
    with pytest.raises(InputError, match="the folder d cannot be listed: Permission denied"):
        list_images([pattern], lambda: b"")


def test_shards_in_a_folder_that_may_not_be_listed_are_not_left_out(tmp_path, monkeypatch) -> None:
    for name in ("one", "two"):
        tar(tmp_path / name / "train-0.tar", {f"{name}.png": picture()})
    assert len(open_data(str(tmp_path / "*" / "*.tar"))) == 2
    refusing(tmp_path / "two", monkeypatch)
    with pytest.raises(InputError, match="two cannot be listed: Permission denied"):
        open_data(str(tmp_path / "*" / "*.tar"))
