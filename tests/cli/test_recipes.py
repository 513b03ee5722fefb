"""`vitrail recipes`: every run of Tables 3 and 4, for people and for programs; one sentence for a bad name."""

import json

import pytest

from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")

JFT = ("B/16", "B/32", "L/32", "L/16-7ep", "L/16-14ep", "H/14", "R50x1", "R50x2", "R101x1", "R152x1", "R152x2")
HYBRIDS = ("R50+B/16", "R50+B/32", "R50+L/32", "R50+L/16-7ep", "R50+L/16-14ep")
NAMES = [
    "small-data",
    "backbone",
    *(f"jft300m-{model}" for model in JFT + HYBRIDS),
    *(f"imagenet21k-{model}" for model in ("B/16", "B/32", "L/16-30ep", "L/16-90ep", "L/32-30ep", "L/32-90ep")),
    *(f"imagenet1k-{model}" for model in ("B/16", "B/32", "L/16", "L/32", "H/14")),
    *("masked-patch-B/16", "mae-B/16"),
    *(f"{kind}-{data}" for kind in ("masked-patch", "mae") for data in ("cifar10", "fashion-mnist", "photos")),
    *("dino-S/16", "moco-S/16", "moco-B/16", "dino-cifar10", "dino-photos", "moco-cifar10", "moco-photos"),
    *(f"finetune-{data}" for data in ("imagenet", "cifar10", "cifar100", "pets", "flowers", "vtab", "imagenet-polyak")),
]


def _listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict]:
    assert main(["recipes", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_recipe_is_a_row_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in _listed(capsys)}
    assert list(rows) == NAMES
    assert all(row.keys() == rows["small-data"].keys() for row in rows.values())
    for name, row in rows.items():
        if name == "small-data":
            assert row["command"] == "vitrail train DATA"
        elif name.startswith("finetune-"):
            assert row["command"] == f"vitrail finetune DATA --from MODEL --recipe {name}"
            assert row["epochs"] is None
        elif name.startswith(("masked-patch-", "mae-", "dino-", "moco-")):
            assert row["command"] == f"vitrail pretrain DATA --recipe {name}"
        else:
            assert row["command"].endswith(f"vitrail train DATA --recipe {name}")
        assert row["about"]


def test_length_cost_and_result_are_the_papers(capsys: pytest.CaptureFixture[str]) -> None:
    (jft, release, pets) = _listed(capsys, "jft300m-L/16-14ep", "imagenet1k-B/32", "finetune-pets")
    assert (jft["epochs"], jft["paper_exaflops"], jft["paper_result"][:6]) == (14, 1567, "87.12%")
    assert jft["exaflops"] == pytest.approx(1567, rel=0.01)
    assert (release["epochs"], release["paper_exaflops"], release["paper_result"][:6]) == (300, None, "69.19%")
    assert release["exaflops"] == pytest.approx(6 * 4.41e9 * 1_281_167 * 300 / 1e18, rel=0.01)
    assert (pets["epochs"], pets["paper_exaflops"], pets["paper_result"][:6]) == (None, None, "94.43%")
    assert pets["exaflops"] == pytest.approx(6 * 55.5e9 * 512 * 500 / 1e18, rel=0.01)


def test_the_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line in ("Pre-training", "Fine-tuning")] == ["Pre-training", "Fine-tuning"]
    cells = {words[0]: words[1:5] for line in lines if (words := line.split()) and words[0] in NAMES}
    assert list(cells) == NAMES  # a line for each, in order
    assert max(map(len, lines)) <= 80
    assert cells["jft300m-H/14"] == ["14", "4259", "4262", "88.08%"]
    assert cells["finetune-pets"][:2] == ["0.08522", "94.43%"]
    assert cells["imagenet1k-H/14"] == ["300", "385.8", "-", "-"]
    assert cells["small-data"][:3] == ["-", "-", "-"]


def test_of_one_recipe_the_command_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "imagenet1k-B/16"]) == 0
    said = capsys.readouterr().out
    assert "74.79%" in said
    assert said.strip().endswith("vitrail train DATA --recipe imagenet1k-B/16")
    assert "imagenet1k-B/32" not in said


def test_of_one_recipe_everything_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "finetune-cifar10"]) == 0
    assert "CIFAR-10, 384 px, 10,000 steps, rates 0.001" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("imagenet1k-B/16-smoke", "vitrail train DATA --recipe imagenet1k-B/16-smoke"),
        ("finetune-pets-smoke", "vitrail finetune DATA --from MODEL --recipe finetune-pets-smoke"),
    ],
)
def test_a_small_twin_can_be_asked_for(name: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = _listed(capsys, name)
    assert (row["name"], row["command"], row["exaflops"], row["paper_result"]) == (name, command, None, None)
    assert main(["recipes", name]) == 0
    assert capsys.readouterr().out.strip().endswith(command)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("imagenet1k-B/15", "Did you mean imagenet1k-B/16"),
        ("finetune-pet", "Did you mean finetune-pets"),
        ("small-data-smoke", "there is no recipe 'small-data-smoke'"),
        ("", "NAME is empty"),
    ],
)
def test_a_name_that_is_none_is_one_sentence(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "imagenet1k-B/16", name]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err
