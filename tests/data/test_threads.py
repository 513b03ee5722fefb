import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.making import picture, tar
from vitrail.data import open as open_data
from vitrail.data.sources import shard_pictures


@pytest.fixture
def hasty():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def wrongly_read(data, expected: list[bytes]) -> int:
    """Count the images that came out wrong when eight threads read them in eight random orders."""

    def read(seed: int) -> int:
        order = np.random.default_rng(seed).integers(0, len(data), 1000)
        return sum(data.read(int(row)) != expected[row] for row in order)

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(read, range(8)))


@pytest.mark.usefixtures("hasty")
def test_threads_read_more_shards_than_may_be_open(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shard_pictures, "_MOST_OPEN", 2)
    expected = [picture(number) for number in range(40)]
    for number, content in enumerate(expected):
        tar(tmp_path / f"{number:02d}.tar", {"x.png": content})
    assert wrongly_read(open_data(tmp_path), expected) == 0


@pytest.mark.usefixtures("hasty")
def test_threads_read_more_row_groups_than_are_kept(tmp_path) -> None:
    expected = [picture(number) for number in range(40)]
    pq.write_table(pa.table({"image": expected}), tmp_path / "x.parquet", row_group_size=1)
    assert wrongly_read(open_data(tmp_path / "x.parquet"), expected) == 0
