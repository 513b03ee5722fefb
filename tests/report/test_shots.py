from pathlib import Path
from xml.etree import ElementTree

from PIL import Image

from vitrail.report.shots import ShotsLine, write_shots

LINES = [
    ShotsLine(name="ridge", shots=(1.0, 5.0, 600.0), accuracies=(0.3, 0.5, 0.8), spreads=(0.04, 0.02, 0.0)),
    ShotsLine(name="probe", shots=(1.0, 5.0, 600.0), accuracies=(0.28, 0.52, 0.81), spreads=(0.05, 0.02, 0.0)),
]


def test_an_svg_names_every_method_and_every_number_of_shots(tmp_path: Path) -> None:
    path = tmp_path / "shots.svg"
    write_shots(LINES, path, title="$x$ & 写真\x1b[31m")
    picture = ElementTree.parse(path)  # noqa: S314 - what was just written
    texts = {"".join(node.itertext()) for node in picture.iter() if node.tag.endswith("}text")}
    assert {"ridge", "probe", "1", "5", "600", "accuracy", "training images of each class"} <= texts
    assert "$x$ & 写真\\x1b[31m" in texts


def test_the_same_scores_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        write_shots(LINES, tmp_path / name, title="the same")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_png_is_a_picture(tmp_path: Path) -> None:
    write_shots(LINES, tmp_path / "shots.PNG", title="a picture")
    with Image.open(tmp_path / "shots.PNG") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 400


def test_one_number_of_shots_is_a_picture_too(tmp_path: Path) -> None:
    line = ShotsLine(name="ridge", shots=(5.0,), accuracies=(0.5,), spreads=(0.0,))
    write_shots([line], tmp_path / "one.svg", title="one")
    assert (tmp_path / "one.svg").stat().st_size > 1000
