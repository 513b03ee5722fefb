"""One value for each format: who reads, who writes, under which name."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import vitrail
from tests.checkpoint.making import made
from tests.tiny import resnet_config, vit_config
from vitrail import CheckpointError
from vitrail.checkpoint.files import describe_model
from vitrail.checkpoint.formats import all as formats
from vitrail.checkpoint.formats.all import FORMATS, NAMES, write_any


def test_each_layout_is_read_once_and_has_abilities_of_its_own() -> None:
    readers = [form.read for form in FORMATS if form.read is not None]
    assert len(set(readers)) == len(readers)
    pairs = [(form.name, str(form.abilities), str(form.headless)) for form in FORMATS]
    assert len(set(pairs)) == len(pairs)


def test_the_names_are_those_of_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "checkpoints.md").read_text()
    table = guide.split("| format | read | written with `to=` |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\|[^|]*\|[^|]*\| `([a-z-]+)` \|", table, flags=re.MULTILINE)) == set(NAMES)


@pytest.mark.parametrize(
    ("config", "to", "name", "message"),
    [
        (vit_config(), "google", "x.safetensors", r"a google file ends in \.npz, but .*; name it .*x\.npz"),
        (resnet_config(), "google", "x", r"ends in \.npz"),
        (vit_config(), "timm", "x.npz", r"a timm file ends in \.safetensors, or is a folder, but"),
        (resnet_config(), "timm", "x", r"a timm file ends in \.safetensors, but"),
        (
            vit_config(),
            "huggingface",
            "x.safetensors",
            r"huggingface is a folder, but .* has the suffix '\.safetensors'",
        ),
        (vit_config(), "torchvision", "x.pth", r"ends in \.safetensors"),
    ],
)
def test_a_name_that_would_mislead_is_refused(config, to, name, message, tmp_path) -> None:
    with pytest.raises(CheckpointError, match=message):
        vitrail.save(made(config), tmp_path / name, to=to)
    assert not any(tmp_path.iterdir())


@pytest.mark.usefixtures("unchecked")
def test_an_unknown_format_is_refused_with_those_there_are(tmp_path) -> None:
    with pytest.raises(CheckpointError, match=r"no format 'googel'; choose one of vitrail, google, .*Did you mean"):
        vitrail.save(made(vit_config()), tmp_path / "x", to="googel")


@pytest.mark.usefixtures("unchecked")
def test_a_new_format_is_one_value_in_the_list(monkeypatch, tmp_path) -> None:
    written = []
    form = replace(FORMATS[1], name="mine", suffixes=(".mine",), write=lambda c, path: written.append(path) or c)
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, form))
    write_any(describe_model(made(vit_config())), tmp_path / "x.mine", "mine")
    assert written == [tmp_path / "x.mine"]
