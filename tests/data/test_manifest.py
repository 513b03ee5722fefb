import csv
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.making import picture, tree
from vitrail import InputError
from vitrail.base.errors import ImageError
from vitrail.data import open as open_data
from vitrail.data import open_splits, write_manifest
from vitrail.data.sources import columns, manifest, present

FILES = ["cat/1.jpg", "cat/2.jpg", "dog/3.jpg", "dog/4.jpg"]


def names(data) -> list[str]:
    return [os.path.relpath(data.name(index), os.path.dirname(data.where)) for index in range(len(data))]  # noqa: PTH120


def written(folder, text: str, name: str = "list.csv"):
    (folder / name).write_bytes(text.encode())
    return folder / name


@pytest.mark.parametrize("mark", [",", "\t", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_table_is_read_with_any_delimiter_and_line_end(tmp_path, mark, end, last, start) -> None:
    tree(tmp_path, FILES)
    rows = [
        ["Label", "n", "Filename", "subset"],
        *(["dog" if "dog" in name else "cat", "7", name, "train"] for name in FILES),
    ]
    text = start + end.join(mark.join(row) for row in rows) + (end if last else "")
    data = open_data(written(tmp_path, text))
    assert names(data) == FILES
    assert data.labels == ("cat", "dog")
    assert data.targets.tolist() == [0, 0, 1, 1]
    assert data.read(2) == picture(2)


def test_quotes_go_through_pythons_reader_and_give_the_same(tmp_path) -> None:
    tree(tmp_path, ["a, b/1.jpg", 'say "x".jpg', "plain.jpg"])
    with (tmp_path / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["path", "label"], ["a, b/1.jpg", "one, two"], ['say "x".jpg', "b"], ["plain.jpg", "b"]]
        )
    data = open_data(tmp_path / "list.csv")
    assert names(data) == ["a, b/1.jpg", 'say "x".jpg', "plain.jpg"]
    assert data.labels == ("b", "one, two")


CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters='"\n\r\0,;\t/\\', exclude_categories=("C", "Z")),
    min_size=1,
    max_size=12,
)


@given(
    st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["", "train", "val"])), min_size=1, max_size=40),
    st.integers(40, 400),
)
def test_the_fast_reader_agrees_with_pythons(tmp_path_factory, rows, chunk) -> None:
    folder = tmp_path_factory.mktemp("fast")
    path = written(folder, "path,label,split\n" + "".join(",".join(row) + "\n" for row in rows))
    before, columns._CHUNK = columns._CHUNK, chunk
    try:
        fast = columns.read_plain(path, manifest._places, (b"/nowhere/",))
    finally:
        columns._CHUNK = before
    slow = manifest._read_rows(path, folder, manifest._csv_rows(path))
    assert fast is not None
    assert list(fast.paths) == list(slow.paths)
    for what in ("label", "split"):
        words = [getattr(found, f"{what}_words") for found in (fast, slow)]
        codes = [getattr(found, f"{what}s") for found in (fast, slow)]
        assert words[0] == words[1]
        np.testing.assert_array_equal(codes[0], codes[1])
    assert fast.broken == slow.broken


def test_the_fast_reader_was_the_one_for_a_plain_file(tmp_path, monkeypatch) -> None:
    tree(tmp_path, FILES)
    monkeypatch.setattr(manifest, "_csv_rows", lambda _: pytest.fail("the slow reader was asked"))
    assert len(open_data(written(tmp_path, "path,label\n" + "".join(f"{name},x\n" for name in FILES)))) == 4


def test_json_lines(tmp_path) -> None:
    tree(tmp_path, FILES)
    rows = [
        {"image": name, "label": number % 2, "split": "dev" if number == 3 else "train"}
        for number, name in enumerate(FILES)
    ]
    path = written(tmp_path, "\n\n".join(map(json.dumps, rows)), "list.jsonl")
    splits = open_splits(path)
    assert {name: len(data) for name, data in splits.items()} == {"train": 3, "val": 1}
    assert splits["train"].labels == ("0", "1")
    assert splits["val"].targets.tolist() == [1]


def test_whole_numbers_are_indices_and_gaps_are_said(tmp_path) -> None:
    tree(tmp_path, FILES)
    path = written(
        tmp_path,
        "path,label\n" + "".join(f"{name},{number}\n" for name, number in zip(FILES, [0, 3, 3, 10], strict=True)),
    )
    data = open_data(path)
    assert data.labels == tuple(map(str, range(11)))
    assert data.targets.tolist() == [0, 3, 3, 10]
    assert any("no images of 8 of 11 classes" in note for note in data.notes)


def test_numbers_among_names_are_names(tmp_path) -> None:
    tree(tmp_path, FILES)
    data = open_data(
        written(
            tmp_path,
            "path,label\n"
            + "".join(f"{name},{label}\n" for name, label in zip(FILES, ["10", "9", "x", "9"], strict=True)),
        )
    )
    assert data.labels == ("10", "9", "x")


def test_an_empty_label_is_no_label(tmp_path) -> None:
    tree(tmp_path, FILES)
    data = open_data(
        written(
            tmp_path,
            "path,label\n"
            + "".join(f"{name},{label}\n" for name, label in zip(FILES, ["a", "", " ", "b"], strict=True)),
        )
    )
    assert data.targets.tolist() == [0, -1, -1, 1]
    assert any("2 of 4 images" in note for note in data.notes)


def test_a_column_of_paths_alone_is_enough_to_predict(tmp_path) -> None:
    tree(tmp_path, FILES)
    data = open_data(written(tmp_path, "path\n" + "\n".join(FILES)))
    assert (len(data), data.labels) == (4, ())


@pytest.mark.parametrize("quote", ["", '"'])
def test_missing_files_are_charged_to_the_budget(tmp_path, quote) -> None:
    tree(tmp_path, FILES)
    listed = [*FILES, "gone/5.jpg", "cat/6.jpg"]
    path = written(
        tmp_path,
        "path,label\n" + "".join(f"{quote}{name}{quote},x{number % 2}\n" for number, name in enumerate(listed)),
    )
    with pytest.raises(
        InputError, match=r"2 of 6 images are broken or missing, and 0 may be: .*gone/5\.jpg.*no such file"
    ):
        open_data(path)
    data = open_data(path, skip_broken="2")
    assert names(data) == FILES
    assert [os.path.basename(name) for name, _ in data.skipped] == ["5.jpg", "6.jpg"]  # noqa: PTH119
    with pytest.raises(InputError, match=r"1 are broken or missing: .*none\.jpg \(there is no such file\)"):
        open_data(written(tmp_path, "path,label\nnone.jpg,a\n"), skip_broken="100%")


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("bad", ["/etc/hostname", "../secret.jpg", "cat/../../secret.jpg", "", ".."])
def test_paths_that_lead_out_are_refused(tmp_path, bad, quote) -> None:
    tree(tmp_path, ["secret.jpg", "data/cat/1.jpg"])
    path = written(tmp_path / "data", f"path,label\ncat/1.jpg,a\n{quote}{bad}{quote},b\n")
    with pytest.raises(InputError, match=r"1 of 2 images .*(root folder|no path)"):
        open_data(path)
    assert names(open_data(path, skip_broken="1")) == ["cat/1.jpg"]


def test_a_name_with_two_dots_inside_is_fine(tmp_path) -> None:
    tree(tmp_path, ["a..b/c..jpg.jpg"])
    assert len(open_data(written(tmp_path, "path\na..b/c..jpg.jpg\n"))) == 1


def test_absolute_paths_below_the_folder_are_read_and_others_with_a_root(tmp_path) -> None:
    tree(tmp_path, ["store/cat/1.jpg", "store/dog/2.jpg", "lists/3.jpg"])
    inner = written(tmp_path / "store", f"path,label\n{tmp_path}/store/cat/1.jpg,a\ndog/2.jpg,b\n")
    assert names(open_data(inner)) == ["cat/1.jpg", "dog/2.jpg"]
    outer = written(tmp_path / "lists", f"path,label\n{tmp_path}/store/cat/1.jpg,a\n{tmp_path}/store/dog/2.jpg,b\n")
    with pytest.raises(InputError, match="give a root folder above it"):
        open_data(outer)
    data = open_data(outer, root=tmp_path)
    assert data.read(1) == picture(1)
    assert len(open_data(outer, root=tmp_path / "store")) == 2


def test_a_link_to_the_outside_is_listed_and_not_read(tmp_path) -> None:
    tree(tmp_path, ["secret.jpg", "data/1.jpg"])
    (tmp_path / "data/link.jpg").symlink_to(tmp_path / "secret.jpg")
    data = open_data(written(tmp_path / "data", "path\n1.jpg\nlink.jpg\n"))
    with pytest.raises(ImageError, match=r"link\.jpg: it is a link to a place outside"):
        data.image(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names nothing"),
        ("name,label\na.jpg,b\n", "names name, label"),
        ("path,label\n", "lists no images"),
        ("path,label,Label\na.jpg,b,c\n", "2 columns called label"),
        ("path,split\n" + "".join(f"a.jpg,{n}\n" for n in range(200)), "names 200 splits"),
        ("path,label\na.jpg,-3\n", "label -3"),
        ("path,label\na.jpg,99999999\n", "label 99999999"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, text, message) -> None:
    tree(tmp_path, ["a.jpg"])
    with pytest.raises(InputError, match=message):
        open_data(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"path": 1', "line 1 .*cannot be read as JSON"),
        ("[1]", "line 1 .*not an object"),
        ('{"label": "a"}', "no column of paths"),
        ('{"path": ["a"]}', "neither text nor a whole number"),
        ('{"path": "a", "label": true}', "has a label that is neither"),
        ('{"path": "a", "label": ' + "9" * 5000 + "}", "line 1 .*cannot be read as JSON"),
        ('{"path": "a", "path ": "b"}', "2 columns called path"),
        ("[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_json_lines_that_cannot_be_used_are_refused_in_a_sentence(tmp_path, text, message) -> None:
    with pytest.raises(InputError, match=message):
        open_data(written(tmp_path, text, "x.jsonl"))


def test_another_encoding_is_said(tmp_path) -> None:
    for content in ("path,label\ncafé.jpg,a\n".encode("latin-1"), "path,label\na.jpg,b\n".encode("utf-16")):
        (tmp_path / "list.csv").write_bytes(content)
        with pytest.raises(InputError, match="not UTF-8"):
            open_data(tmp_path / "list.csv")


def test_lines_of_unequal_length_are_read_as_far_as_they_go(tmp_path) -> None:
    tree(tmp_path, FILES)
    data = open_data(written(tmp_path, "path,label\ncat/1.jpg,a\n\ncat/2.jpg\ndog/3.jpg,b,more\n"))
    assert data.targets.tolist() == [0, -1, 1]


def test_a_field_without_end_is_a_sentence(tmp_path) -> None:
    with pytest.raises(InputError, match="not a CSV from line"):
        open_data(written(tmp_path, 'path,label\n"' + "x" * 200_000 + '",a\n'))


def test_rows_without_a_split_are_in_none(tmp_path) -> None:
    tree(tmp_path, FILES)
    path = written(
        tmp_path,
        "path,label,split\n"
        + "".join(f"{name},a,{split}\n" for name, split in zip(FILES, ["train", "", "fold 2", "test"], strict=True)),
    )
    splits = open_splits(path)
    assert {name: len(data) for name, data in splits.items()} == {"train": 1, "test": 1, "fold 2": 1}
    assert len(open_data(path)) == 4
    assert any("1 rows" in note for note in splits["train"].notes)


def test_a_long_list_is_checked_by_a_sample_and_fully_when_the_sample_finds_something(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(present, "EVERY", 100)
    monkeypatch.setattr(present, "SAMPLE", 11)
    listed = [f"x/{number:04d}.jpg" for number in range(1001)]
    tree(tmp_path, listed[::100])
    path = written(tmp_path, "path,label\n" + "".join(f"{name},a\n" for name in listed))
    assert len(open_data(path)) == 1001
    (tmp_path / listed[500]).unlink()
    assert len(open_data(path, skip_broken="100%")) == 10


def test_a_written_manifest_opens_again(tmp_path) -> None:
    tree(tmp_path, ["in/cat, or\ndog/1.jpg", "in/é/2.jpg", "3.jpg"])
    rows = [(tmp_path / "in/cat, or\ndog/1.jpg", 'a "b"', "train"), (tmp_path / "in/é/2.jpg", None, None)]
    write_manifest(tmp_path / "in/out.csv", rows)
    data = open_data(tmp_path / "in/out.csv")
    assert [data.read(0), data.read(1)] == [picture(0), picture(1)]
    assert (data.labels, data.targets.tolist()) == (('a "b"',), [0, -1])
    write_manifest(tmp_path / "in/out.csv", [*rows, (tmp_path / "3.jpg", "c", "test")])
    assert len(open_data(tmp_path / "in/out.csv", root=tmp_path)) == 3


@pytest.mark.parametrize("path", ["null", r'"\ud800.jpg"', r'"a\u0000.jpg"'])
def test_a_path_that_no_file_can_have_is_charged_to_the_budget(tmp_path, path) -> None:
    tree(tmp_path, ["a.jpg"])
    file = written(tmp_path, f'{{"path": "a.jpg"}}\n{{"path": {path}}}\n', "x.jsonl")
    with pytest.raises(InputError, match="1 of 2 images are broken or missing"):
        open_data(file)
    assert len(open_data(file, skip_broken="1")) == 1


def test_a_label_that_is_no_text_is_written_out(tmp_path) -> None:
    tree(tmp_path, ["a.jpg"])
    assert open_data(written(tmp_path, r'{"path": "a.jpg", "label": "\ud800"}', "x.jsonl")).labels == ("\\ud800",)


@pytest.mark.parametrize("quote", ["", '"'])
def test_numbers_in_a_column_of_class_names_are_names(tmp_path, quote) -> None:
    tree(tmp_path, ["a.jpg", "b.jpg", "c.jpg"])
    rows = f"a.jpg,{quote}-5{quote}\nb.jpg,10\nc.jpg,9\n"
    data = open_data(written(tmp_path, f"path,class_name\n{rows}"))
    assert (data.labels, data.targets.tolist()) == (("-5", "10", "9"), [0, 1, 2])
    both = "path,class_name,label\na.jpg,10,0\nb.jpg,9,1\n"
    assert open_data(written(tmp_path, both)).labels == ("0", "1")


def test_a_manifest_of_classes_that_are_called_numbers_keeps_their_names(tmp_path) -> None:
    tree(tmp_path, ["1.jpg", "2\r.jpg"])
    rows = [(tmp_path / "1.jpg", "2019", None), (tmp_path / "2\r.jpg", "2020", None)]
    write_manifest(tmp_path / "x.csv", rows, numbers=False)
    data = open_data(tmp_path / "x.csv")
    assert (data.labels, data.targets.tolist()) == (("2019", "2020"), [0, 1])
    assert data.read(1) == picture(1)
    write_manifest(tmp_path / "x.csv", rows)
    assert len(open_data(tmp_path / "x.csv").labels) == 2021


@pytest.mark.parametrize("saved_again", [False, True])
def test_names_that_a_spreadsheet_would_run_are_read_back_unchanged(saved_again: bool, tmp_path) -> None:
    labels = ["=cmd|' /C calc'!A0", "@sum", "+1+2", "-a", "'=quoted", "''x", "cat"]
    listed = ["-1.jpg", "=1.jpg", "@1.jpg", "+1.jpg", "'=1.jpg", "'1.jpg", "1.jpg"]
    tree(tmp_path, listed)
    path = tmp_path / "x.csv"
    write_manifest(path, [(tmp_path / name, label, "train") for name, label in zip(listed, labels, strict=True)])
    if saved_again:
        path.write_text(path.read_text().replace('"', ""))  # as a spreadsheet writes it
    cells = [cell for row in csv.reader(path.read_text().splitlines()) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    data = open_data(path)
    assert names(data) == listed
    assert [data.labels[target] for target in data.targets] == labels
