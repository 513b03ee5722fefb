"""The command `vitrail pull`, and --pull beside the name of a model."""

import json

import pytest

import vitrail
from tests.published.server import send, serving
from tests.tiny import perturbed, vit_config
from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def weights(tmp_path) -> bytes:
    model = perturbed(vit_config(image_size=(16, 16), num_classes=2))
    path = vitrail.save(model, tmp_path / "m.safetensors", labels=["ant", "bee"])
    return path.read_bytes()


def test_a_model_is_pulled_listed_shown_verified_and_removed(capsys, weights) -> None:
    with serving(lambda request, _: send(request, weights)) as server:
        address = server.at("tiny.safetensors")
        assert main(["pull", address]) == 0
        assert "pulled" in capsys.readouterr().out
    assert main(["pull", "--list", "--json"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert (model["name"], model["state"], model["size"]) == (address, "ready", len(weights))
    assert main(["pull", "--list"]) == 0
    assert "ready" in capsys.readouterr().out
    assert main(["show", address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == ["ant", "bee"]
    assert main(["verify", address]) == 0
    assert "good" in capsys.readouterr().out
    assert main(["pull", "--remove", address]) == 0
    assert "freed" in capsys.readouterr().out
    assert main(["show", address]) == 2
    error = capsys.readouterr().err
    assert "is published, but not on this machine; get it once with `vitrail pull http://127.0.0.1" in error
    assert error.count("\n") == 1


def test_pull_beside_a_name_gets_it_first(capsys, weights, tmp_path) -> None:
    with serving(lambda request, _: send(request, weights)) as server:
        address = server.at("tiny.safetensors")
        assert main(["convert", address, str(tmp_path / "b.npz"), "--to", "google", "--lossy", "--pull"]) == 0
        assert main(["diff", address, str(tmp_path / "m.safetensors"), "--pull"]) == 0
        assert len(server.requests) == 1
    assert main(["show", str(tmp_path / "m.safetensors"), "--pull"]) == 0  # a file needs no network
    capsys.readouterr()


def test_the_file_in_the_cache_is_never_a_target(capsys, weights) -> None:
    with serving(lambda request, _: send(request, weights)) as server:
        address = server.at("tiny.safetensors")
        assert main(["pull", address, "--json"]) == 0
        path = json.loads(capsys.readouterr().out)["models"][0]["path"]
    assert main(["convert", address, path, "--force"]) == 2
    assert "is read by this command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no model is named"),
        (["--list", "--remove"], "give one of them"),
        (["--list", "dinov2-S/14"], "--list lists every model"),
        (["dinov2-S/15"], "Did you mean dinov2-S/14"),
        (["--remove", "dinov2-S/14"], "dinov2-S/14 is not in the cache"),
        (["hf:facebook"], "is not a repository of Hugging Face"),
        (["http://example.org/a.npz"], "is not encrypted"),
    ],
)
def test_what_cannot_be_pulled_is_one_sentence(capsys, words, sentence) -> None:
    assert main(["pull", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_a_cache_that_cannot_be_made_is_one_sentence(capsys, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "file" / "cache"))
    assert main(["pull", "vit-B/16"]) == 1
    assert "set VITRAIL_CACHE to a folder that can be written to" in capsys.readouterr().err


def test_published_models_are_listed_with_their_facts(capsys) -> None:
    assert main(["models", "--published", "clip-*", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["published"]
    assert [row["name"] for row in rows] == ["clip-B/32", "clip-B/16", "clip-L/14", "clip-L/14-336"]
    assert rows[0]["source"] == "hf:openai/clip-vit-base-patch32"
    assert main(["models", "--published", "mae-B/16"]) == 0
    assert "CC-BY-NC-4.0" in capsys.readouterr().out
    assert main(["models", "--published", "--image-size", "384"]) == 2
    assert "have sizes of their own" in capsys.readouterr().err
