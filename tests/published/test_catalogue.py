"""The catalogue as data: what a row says must be true of what can be known without a network."""

import re
import subprocess
import sys

import pytest

import vitrail
from vitrail.base.errors import ConfigError
from vitrail.data.preprocessing import PRESETS
from vitrail.model.variants import NAMES
from vitrail.published.catalogue import CATALOGUE, look_up, nearest
from vitrail.published.entry import Published
from vitrail.published.source import parse_source

FAMILIES = {
    "vit",
    "augreg",
    "bit",
    "siglip",
    "siglip2",
    "deit",
    "deit3",
    "mae",
    "dino",
    "dinov2",
    "dinov3",
    "clip",
    "openclip",
}
HOSTS = ("https://storage.googleapis.com/vit_models/", "https://storage.googleapis.com/bit_models/", "hf:")


def test_every_family_is_there() -> None:
    assert {name.partition("-")[0] for name in CATALOGUE} == FAMILIES
    assert len(CATALOGUE) == 97


@pytest.mark.parametrize("row", CATALOGUE.values(), ids=lambda row: row.name)
def test_a_row_can_be_read_and_pulled(row: Published) -> None:
    source = parse_source(row.name.upper())
    assert source is not None
    assert source.entry is row
    assert row.source.startswith(HOSTS)
    assert " " not in row.source
    assert row.pixels in PRESETS
    assert row.licence
    assert row.data
    assert row.size is None
    assert row.sha256 is None
    size = re.fullmatch(r"\w+-([\w+]+)/(\d+)(-.+)?", row.name)
    if size is None:
        assert re.fullmatch(r"bit-[SM]-R\d+x\d(-in1k)?", row.name)
        assert row.num_heads == 0
        assert row.name.split("-")[2] in NAMES
        return
    assert int(row.image_size) >= int(size[2])
    if f"{size[1]}/16" in NAMES:  # heads as in the paper's table
        assert row.num_heads == vitrail.configure(f"{size[1]}/16").num_heads
    last = re.search(r"-(224|256|336|384|512)$", row.name)
    assert last is None or row.image_size == int(last[1])


def test_two_rows_never_lead_to_the_same_place() -> None:
    assert len({row.source for row in CATALOGUE.values()}) == len(CATALOGUE)
    keys = {source.key for name in CATALOGUE if (source := parse_source(name)) is not None}
    assert len(keys) == len(CATALOGUE)


def test_names_are_found_in_any_letters_and_near_ones_are_asked_for() -> None:
    assert look_up("DINOV2-s/14") is CATALOGUE["dinov2-S/14"]
    assert look_up("dinov2") is None
    assert "dinov2-S/14" in nearest("dinov2-S14")
    assert nearest("dinov2-S14.safetensors") == ""
    with pytest.raises(ConfigError, match=r"there is no published model 'dino2-S/14'.*Did you mean dinov2-S/14"):
        vitrail.pull("dino2-S/14")
    with pytest.raises(ConfigError, match=r"there is no published model 'dinov2'"):
        vitrail.list_published("dinov2")
    with pytest.raises(ConfigError, match="must be 8 to 64 hexadecimal digits"):
        Published(
            name="a", source="hf:a/b", licence="MIT", data="-", image_size=8, pixels="clip", num_heads=1, sha256="xyz"
        )


def test_the_network_is_not_even_imported_by_the_package_its_readers_or_the_catalogue() -> None:
    code = (
        "import sys, vitrail; vitrail.load; vitrail.list_published('*').to_dict()\n"
        "ours = {f'vitrail.published.{name}' for name in ('web', 'download', 'hub')}\n"
        "sys.exit(str(bad) if (bad := (ours | {'huggingface_hub'}) & set(sys.modules)) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
