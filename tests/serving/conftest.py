from pathlib import Path

import pytest

from tests.serving.making import Bench, save_model


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("served") / "tiny.safetensors")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tiny_file: Path) -> Bench:
    return Bench(monkeypatch, tiny_file)
