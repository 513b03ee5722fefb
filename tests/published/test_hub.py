"""Repositories of Hugging Face, from a stand-in that its own setting of the endpoint names."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants

import vitrail
from tests.published.hub_server import COMMIT, Repository, publishing
from vitrail.base.errors import ConfigError, InputError, NetworkError
from vitrail.published.find import find_published
from vitrail.published.hub import choose

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights" * 1000,
    "pytorch_model.bin": b"pickle",
    "README.md": b"-",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of Hugging Face of its own; its library reads the environment once, so its constants are set."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    return tmp_path / "hub"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch):
    def choose_endpoint(server) -> None:
        address = server.at("").rstrip("/")
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + template)

    return choose_endpoint


def test_a_repository_is_pulled_by_the_command_through_its_endpoint_into_its_cache(tmp_path) -> None:
    with publishing(Repository("who/what", FILES)) as server:
        env = os.environ | {
            "HF_ENDPOINT": server.at("").rstrip("/"),
            "HF_HOME": str(tmp_path / "hf"),
            "HF_TOKEN": "hf_secret",
        }
        command = [sys.executable, "-m", "vitrail", "pull", "hf:who/what@main", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
        assert done.returncode == 0, done.stderr
        asked = [path for path, headers in server.requests if headers.get("authorization") == "Bearer hf_secret"]
        asked = [path for path in asked if "/resolve/" in path]
        assert {path.rpartition("/")[2] for path in asked} == {"config.json", "model.safetensors"}
        (model,) = json.loads(done.stdout)["models"]
        assert model["revision"] == COMMIT
        assert Path(model["path"]).is_relative_to(tmp_path / "hf")
        count = len(server.requests)
        offline = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
        assert json.loads(offline.stdout)["models"][0]["fresh"] is False
        assert len(server.requests) == count
    place = find_published("hf:who/what@main")
    assert place is not None
    assert (place.path / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert place.record.revision == COMMIT


def test_the_digests_of_a_repository_are_checked_and_held(home, endpoint) -> None:
    listed = Repository("who/what", FILES, listed={"model.safetensors": "ab" * 32})
    with publishing(listed) as server:
        endpoint(server)
        with pytest.raises(
            NetworkError, match=r"model.safetensors has the SHA-256 \w{16}, but its repository lists abab"
        ):
            vitrail.pull("hf:who/what", note=print)
    with publishing(Repository("who/what", FILES)) as server:
        endpoint(server)
        first = vitrail.pull("hf:who/what", note=print)
        assert first.fresh
        assert home in first.path.parents
        notes: list[str] = []
        vitrail.remove_pulled("hf:who/what", note=notes.append)
        assert "its files stay in the cache of Hugging Face" in notes[0]
        assert first.path.is_dir()


def test_without_a_network_the_cache_of_hugging_face_is_taken(home, endpoint, monkeypatch) -> None:
    with publishing(Repository("who/what", FILES)) as server:
        endpoint(server)
        pulled = vitrail.pull("hf:who/what", note=print)
        vitrail.remove_pulled("hf:who/what", note=print)
    again = vitrail.pull("hf:who/what", note=print)  # nobody answers at the endpoint any more
    assert again.path == pulled.path
    assert home in again.path.parents
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        NetworkError, match=r"who/else is not in the cache of Hugging Face, and .* HF_HUB_OFFLINE is set"
    ):
        vitrail.pull("hf:who/else", note=print)


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        ((401, "RepoNotFound"), r"there is no repository who/what at http://127.0.0.1:\d+, or it is private"),
        ((403, "GatedRepo"), r"who/what is gated: accept its licence on its page, then give your token in HF_TOKEN"),
        ((404, "RevisionNotFound"), r"who/what has no revision old"),
        ((400, "Other"), r"who/what could not be downloaded from http://127.0.0.1:\d+: "),
    ],
)
@pytest.mark.usefixtures("home")
def test_a_refusal_is_one_sentence(endpoint, refused, sentence) -> None:
    with publishing(Repository("who/what", FILES, refused=refused)) as server:
        endpoint(server)
        with pytest.raises(NetworkError, match=sentence):
            vitrail.pull("hf:who/what@old", note=print)


def test_safetensors_come_before_pickles_and_shards_come_together() -> None:
    assert choose(FILES, "r") == ("", ["model.safetensors", "config.json"])
    assert choose(["pytorch_model.bin", "config.json"], "r")[1] == ["pytorch_model.bin", "config.json"]
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = "model.safetensors.index.json"
    assert choose([*shards, index, "config.json"], "r") == ("", [index, *shards, "config.json"])
    tower = ["open_clip_model.safetensors", "open_clip_config.json"]
    assert choose([*tower, "open_clip_pytorch_model.bin"], "r") == ("", tower)
    assert choose(["B_16.npz", "README.md"], "r") == ("B_16.npz", ["B_16.npz"])
    with pytest.raises(
        InputError, match=r"r has no model.safetensors and not one file of weights alone; it has a.npz, b.npz"
    ):
        choose(["a.npz", "b.npz"], "r")


def test_without_the_library_the_install_command_is_given(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r"needs huggingface_hub, .* `pip install 'vitrail\[hub\]'`"):
        vitrail.pull("hf:who/what", note=print)
