"""The verbs about files of weights from Python: show, verify, diff, convert."""

import hashlib

import numpy as np
import pytest
import torch

import vitrail
from tests.base.test_table import read
from tests.tiny import perturbed, vit_config
from vitrail import CheckpointError, InputError

pytestmark = pytest.mark.usefixtures("workplace")

HOSTILE = "<b>bee</b>"


def test_show_describes_what_the_file_holds() -> None:
    description = vitrail.show("model.safetensors")
    model = vitrail.load("model.safetensors")
    assert description.config == model.config
    assert description.preprocessing == model.info.preprocessing
    assert description.digest == model.info.digest
    assert description.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert description.types == ("float32",)
    assert model.info.digest in repr(description)


def test_labels_are_never_markup() -> None:
    model = vitrail.load("model.safetensors")
    vitrail.save(model, "x.safetensors", labels=[HOSTILE, "ant"], provenance={HOSTILE: HOSTILE})
    page = read(vitrail.show("x.safetensors")._repr_html_())
    assert page.tags.count("b") == 1  # the title
    assert HOSTILE in page.text


def test_verify_lists_what_is_wrong(workplace) -> None:
    assert vitrail.verify("model.safetensors").problems == ()
    data = bytearray((workplace / "model.safetensors").read_bytes())
    data[-5] ^= 4
    (workplace / "x.safetensors").write_bytes(data)
    verification = vitrail.verify("x.safetensors")
    assert not verification.good
    assert "at least one bit has changed" in repr(verification)
    with pytest.raises(InputError, match="there is no file or folder nowhere"):
        vitrail.verify("nowhere")


def test_diff_names_the_largest_difference() -> None:
    difference = vitrail.diff("model.safetensors", "other.safetensors")
    (tensor,) = difference.tensors
    assert tensor.largest_difference == pytest.approx(0.5, abs=1e-6)
    assert difference.settings == ()
    assert "head.linear.bias" in repr(difference)
    assert vitrail.diff("model.safetensors", "other.safetensors", tolerance=0.6).same


def test_diff_takes_models_in_memory(workplace) -> None:
    model = vitrail.load("model.safetensors")
    assert vitrail.diff(model, "model.safetensors").same
    with torch.no_grad():
        model.head.linear.bias[0] = float("nan")
    difference = vitrail.diff(model, workplace / "model.safetensors")
    assert np.isnan(difference.tensors[0].largest_difference)
    assert "Differences of the model (first)" in repr(difference)


def test_convert_writes_the_same_weights_and_returns_where() -> None:
    conversion = vitrail.convert("model.safetensors", "x.npz", to="google")
    assert conversion.path.is_file()
    assert vitrail.diff("model.safetensors", conversion.path).tensors == ()
    back = vitrail.convert(conversion.path, "y.safetensors")
    assert (back.source_format, back.format) == ("google", "vitrail")
    parent = hashlib.sha256(conversion.path.read_bytes()).hexdigest()
    assert vitrail.show(back.path).provenance["parent"] == parent
    assert f"{back.parameters:,} parameters" in repr(back)


def test_convert_names_settings_where_it_refuses() -> None:
    with pytest.raises(CheckpointError, match="`lossy`"):
        vitrail.convert("model.safetensors", "x.safetensors", to="torchvision")
    vitrail.save(perturbed(vit_config(positions="relative")), "relative.safetensors")
    with pytest.raises(CheckpointError, match="`to` vitrail holds every model"):
        vitrail.convert("relative.safetensors", "x.npz", to="google")
