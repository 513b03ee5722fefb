"""A cache of its own for every test, and downloads without waits."""

from pathlib import Path

import pytest

from vitrail.published.cache import Cache
from vitrail.published.download import Patience

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "cache"))
    return Cache(folder=tmp_path / "cache")


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def patience(waits: list[float]) -> Patience:
    return Patience(timeout=0.5, tries=3, pause=1.0, longest=60.0, sleep=waits.append)
