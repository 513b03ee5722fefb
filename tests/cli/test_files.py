"""The verbs about files of weights: convert, show, diff, verify."""

import json

import numpy as np
import pytest
import torch

import vitrail
from tests.checkpoint.making import JAX, made, recorded, same_weights
from tests.tiny import vit_config
from vitrail.cli.main import main

LABELS = ["ant", "[bold]bee", "[/]", "d", "e", "f", "g"]


@pytest.fixture
def path(tmp_path):
    model = made(vit_config(image_size=(16, 16)))
    pixels = vitrail.Preprocessing(image_size=(16, 16))
    return vitrail.save(
        model, tmp_path / "x.safetensors", labels=LABELS, preprocessing=pixels, provenance={"data": "insects"}
    )


def run(capsys, *words) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    output = capsys.readouterr()
    return code, output.out, output.err


def run_json(capsys, *words) -> tuple[int, dict]:
    code, out, _ = run(capsys, *words, "--json")
    return code, json.loads(out)


def test_convert_brings_a_google_file_in_with_where_it_is_from(tmp_path, capsys) -> None:
    source = JAX / "vit_token.params.npz"
    code, report = run_json(capsys, "convert", source, tmp_path / "x.safetensors")
    model = vitrail.load(tmp_path / "x.safetensors")
    assert (code, report["from"], report["to"]) == (0, "google-linen", "vitrail")
    assert report["digest"] == model.info.digest
    assert report["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert model.info.provenance["source"] == {"file": "vit_token.params.npz", "format": "google-linen"}
    assert len(model.info.provenance["parent"]) == 64
    same_weights(model, vitrail.load(source))


@pytest.mark.parametrize("to", ["google", "google-linen", "big-vision", "timm", "huggingface"])
def test_convert_writes_every_format_and_diff_finds_the_same_weights(to, path, tmp_path, capsys) -> None:
    suffix = {"huggingface": "", "timm": ".safetensors"}.get(to, ".npz")
    destination = tmp_path / f"y{suffix}"
    code, out, _ = run(capsys, "convert", path, destination, "--to", to)
    assert code == 0
    assert "parameters" in out
    code, report = run_json(capsys, "diff", path, destination)
    if to == "big-vision":  # the class token's position is folded
        assert {row["name"] for row in report["tensors"]} == {"embedding.class_token", "embedding.positions.table"}
    else:
        assert report["tensors"] == []
    assert code == (to != "timm")  # labels have no place in an .npz; Hugging Face resizes positions its own way


def test_convert_imports_a_torch_file(tmp_path, capsys) -> None:
    torch.save(recorded("timm_token")[0], tmp_path / "x.pth")
    words = ["convert", tmp_path / "x.pth", tmp_path / "y.safetensors", "--num-heads", "3", "--image-size", "16x24"]
    words += ["--architecture", "timm"]
    assert run(capsys, *words)[0] == 0
    assert vitrail.load(tmp_path / "y.safetensors").config.num_heads == 3


def test_convert_refuses_what_the_target_cannot_hold_and_lossy_lets_numerics_go(path, tmp_path, capsys) -> None:
    words = ["convert", path, tmp_path / "y.safetensors", "--to", "torchvision"]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert "gelu='tanh': torchvision computes with 'erf'" in err
    assert run(capsys, *words, "--lossy")[0] == 0


def test_convert_does_not_write_over_its_source(path, capsys) -> None:
    before = path.read_bytes()
    code, _, err = run(capsys, "convert", path, path)
    assert code == 2
    assert "is read by this command" in err
    assert path.read_bytes() == before


def test_show_tells_everything(path, capsys) -> None:
    code, report = run_json(capsys, "show", path)
    model = vitrail.load(path)
    assert code == 0
    assert report["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert (report["format"], report["types"], report["digest"]) == ("vitrail", ["float32"], model.info.digest)
    assert report["config"]["dim"] == 32
    assert report["numerics"]["gelu"] == "tanh"
    assert report["labels"] == LABELS
    assert report["preprocessing"]["image_size"] == [16, 16]
    assert report["provenance"]["data"] == "insects"
    assert report["notes"] == []
    code, out, _ = run(capsys, "show", path)
    for part in ("  depth ", "insects", model.info.digest, "7: ant, [bold]bee, [/]", f"{report['parameters']:,}"):
        assert part in out


def test_show_warns_of_a_head_of_zeros(tmp_path, capsys) -> None:
    with np.load(JAX / "vit_token.params.npz") as stored:
        values = dict(stored) | {"head/kernel": np.zeros((64, 10), np.float32)}
    np.savez(tmp_path / "x.npz", **values)
    code, report = run_json(capsys, "show", tmp_path / "x.npz")
    assert code == 0
    assert "the head is all zeros" in report["notes"][0]
    assert "the head is all zeros" in run(capsys, "show", tmp_path / "x.npz")[1]


def test_diff_names_the_tensors_and_settings_that_differ(path, tmp_path, capsys) -> None:
    model = vitrail.load(path, dropout=0.1)
    with torch.no_grad():
        model.encoder.blocks[1].mlp.out.bias[3] += 0.5
        model.head.linear.weight[0, 0] = float("nan")
    vitrail.save(model, tmp_path / "y.safetensors")
    code, report = run_json(capsys, "diff", path, tmp_path / "y.safetensors")
    assert code == 1
    assert report["settings"] == [{"name": "config.dropout", "first": 0.0, "second": 0.1}]
    rows = {row["name"]: row for row in report["tensors"]}
    assert rows.keys() == {"encoder.blocks.1.mlp.out.bias", "head.linear.weight"}
    assert rows["encoder.blocks.1.mlp.out.bias"]["largest_difference"] == pytest.approx(0.5, abs=1e-6)
    assert np.isnan(rows["head.linear.weight"]["largest_difference"])
    code, out, _ = run(capsys, "diff", path, tmp_path / "y.safetensors")
    assert "encoder.blocks.1.mlp.out.bias" in out


def test_diff_is_silent_about_what_is_within_the_tolerance(path, tmp_path, capsys) -> None:
    model = vitrail.load(path)
    with torch.no_grad():
        model.encoder.blocks[1].mlp.out.bias.add_(1e-3)
    vitrail.save(model, tmp_path / "y.safetensors")
    assert run(capsys, "diff", path, tmp_path / "y.safetensors")[0] == 1
    assert run(capsys, "diff", path, tmp_path / "y.safetensors", "--tolerance", "0.01")[0] == 0


def test_diff_shows_what_only_one_has(path, tmp_path, capsys) -> None:
    vitrail.save(made(vit_config(image_size=(16, 16), depth=1, num_classes=3)), tmp_path / "y.safetensors")
    _, report = run_json(capsys, "diff", path, tmp_path / "y.safetensors")
    rows = {row["name"]: (row["first"], row["second"]) for row in report["tensors"]}
    assert rows["encoder.blocks.1.norm1.bias"] == ("32", "none")
    assert rows["head.linear.weight"] == ("7x32", "3x32")


def test_verify_tells_good_from_bad(path, capsys) -> None:
    code, out, _ = run(capsys, "verify", path)
    assert code == 0
    assert "good. 32 tensors, all finite; SHA-256" in out
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(data)
    code, out, _ = run(capsys, "verify", path)
    assert code == 1
    assert "at least one bit has changed" in out
    code, report = run_json(capsys, "verify", path)
    assert (code, report["good"], len(report["problems"])) == (1, False, 1)


def test_verify_reads_foreign_files_to_the_end(tmp_path, capsys) -> None:
    code, report = run_json(capsys, "verify", JAX / "vit_token.params.npz")
    assert (code, report["good"], report["format"], report["digest"]) == (0, True, "google-linen", None)
    with np.load(JAX / "vit_token.params.npz") as stored:
        values = dict(stored)
    values["head/kernel"][0, 0] = np.nan
    np.savez(tmp_path / "x.npz", **values)
    code, report = run_json(capsys, "verify", tmp_path / "x.npz")
    assert (code, report["problems"]) == (1, ["NaN or infinite weights in head.linear.weight."])


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_a_missing_file_is_wrong_usage(verb, tmp_path, capsys) -> None:
    code, out, err = run(capsys, verb, tmp_path / "nowhere")
    assert (code, out) == (2, "")
    assert "there is no file or folder" in err


@pytest.mark.parametrize("verb", ["show", "verify", "diff"])
def test_a_torch_file_needs_a_word(verb, tmp_path, capsys) -> None:
    torch.save(recorded("torchvision_token")[0], tmp_path / "x.pth")
    files = [tmp_path / "x.pth"] * (1 + (verb == "diff"))
    assert run(capsys, verb, *files, "--num-heads", "3")[0] in (1, 2)
    assert run(capsys, verb, *files, "--num-heads", "3", "--pickle")[0] == 0
