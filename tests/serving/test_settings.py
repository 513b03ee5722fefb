import pytest

from vitrail.base.errors import ConfigError, InputError
from vitrail.cli.serve import named_models
from vitrail.serving.keys import read_keys
from vitrail.serving.service import check_names
from vitrail.serving.settings import ServeSettings
from vitrail.verbs.serve import model_name


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_alone_needs_no_key(host) -> None:
    assert ServeSettings(host=host).is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])  # noqa: S104
def test_any_other_address_needs_a_key(host) -> None:
    with pytest.raises(ConfigError, match="api_key_file"):
        ServeSettings(host=host)
    assert not ServeSettings(host=host, api_key_file="keys").is_local


@pytest.mark.parametrize(
    "settings",
    [
        {"port": -1},
        {"port": 65536},
        {"batch": 0},
        {"max_queue": 0},
        {"max_body": 0},
        {"timeout": 0.0},
        {"max_wait": 0.0},
        {"timeout": float("nan")},
        {"workers": 0},
        {"threads": 5000},
        {"max_images": 65},
        {"cors": ("example.org",)},
        {"grace": -1.0},
        {"max_pixels": 0},
    ],
)
def test_impossible_settings_are_refused(settings) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        ServeSettings(**settings)


def test_workers_and_threads_share_the_cores() -> None:
    workers, threads = ServeSettings().shares
    assert workers >= 1
    assert threads == 1
    assert ServeSettings(workers=3, threads=2).shares == (3, 2)
    assert ServeSettings(threads=10_00).shares == (1, 1000)


def test_keys_are_lines_of_a_file_and_others_must_not_read_it(tmp_path) -> None:
    path, notes = tmp_path / "keys", []
    path.write_text("a" * 16 + "\n\n  " + "b" * 32 + "\n")
    path.chmod(0o600)
    assert read_keys(str(path), notes.append) == (b"a" * 16, b"b" * 32)
    assert notes == []
    path.chmod(0o644)
    read_keys(str(path), notes.append)
    assert "chmod 600" in notes[0]


@pytest.mark.parametrize("text", ["", "\n", "short\n"])
def test_keys_that_protect_nothing_are_refused(tmp_path, text) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(ConfigError, match="at least 16 characters"):
        read_keys(str(path), print)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_keys(str(tmp_path / "missing"), print)


def test_models_have_names() -> None:
    assert named_models(("runs/photos",)) == {"photos": "runs/photos"}
    assert named_models(("a=runs/a", "b=x.safetensors")) == {"a": "runs/a", "b": "x.safetensors"}
    assert model_name("models/my model.npz") == "my-model"
    for words, sentence in (((), "no model"), (("x/a.npz", "y/a.npz"), "two models")):
        with pytest.raises(InputError, match=sentence):
            named_models(words)
    with pytest.raises(InputError, match="letters"):
        check_names(["a/b"])
