"""One process at a time works on a cell; a dead one's cell is taken over, once."""

import errno
import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from vitrail.base.errors import WriteError
from vitrail.studies import lease as lease_module
from vitrail.studies.lease import Lease


def test_a_claim_keeps_others_out_until_it_ends(tmp_path) -> None:
    lease = Lease(folder=tmp_path / "cell")
    claim = lease.take()
    assert claim is not None
    assert lease.take() is None
    with lease.kept(claim):
        assert lease.take() is None
    assert lease.take() is not None


def test_of_many_takers_one_wins(tmp_path) -> None:
    lease = Lease(folder=tmp_path)
    with ThreadPoolExecutor(16) as pool:
        claims = list(pool.map(lambda _: lease.take(), range(64)))
    assert sum(claim is not None for claim in claims) == 1


def test_the_cell_of_a_dead_process_is_taken_over_by_one(tmp_path) -> None:
    code = "import sys, pathlib, vitrail.studies.lease as lease; lease.Lease(folder=pathlib.Path(sys.argv[1])).take()"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    lease = Lease(folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["claim-0"]
    with ThreadPoolExecutor(16) as pool:
        claims = [claim for claim in pool.map(lambda _: lease.take(), range(64)) if claim is not None]
    assert [claim.name for claim in claims] == ["claim-1"]


def test_another_machine_is_alive_while_it_shows_signs_of_life(tmp_path) -> None:
    lease = Lease(folder=tmp_path)
    claim = tmp_path / "claim-0"
    claim.write_text(json.dumps({"machine": platform.node() + "-other", "process": 1, "begun": "1"}))
    assert lease.take() is None
    silent = claim.stat().st_mtime - lease_module.SILENCE - 1
    os.utime(claim, (silent, silent))
    assert lease.take().name == "claim-1"


def test_an_owner_that_was_taken_for_dead_leaves_the_new_claim_alone(tmp_path) -> None:
    lease = Lease(folder=tmp_path)
    claim = lease.take()
    with lease.kept(claim):
        (tmp_path / "claim-1").write_text("{}")
    assert [path.name for path in tmp_path.iterdir()] == ["claim-1"]


@pytest.mark.parametrize("content", ["[]", "3", "null", "", "{}", '{"machine": 1}'])
def test_a_claim_that_names_no_owner_counts_by_its_age(tmp_path, content: str) -> None:
    lease, claim = Lease(folder=tmp_path), tmp_path / "claim-0"
    claim.write_text(content)
    assert lease.take() is None
    silent = claim.stat().st_mtime - lease_module.SILENCE - 1
    os.utime(claim, (silent, silent))
    assert lease.take().name == "claim-1"


@pytest.mark.parametrize("process", ["x", "\0", [1], None, 10**30, {}])
def test_a_process_that_cannot_be_is_dead(tmp_path, process: object) -> None:
    for number, begun in enumerate(("1", None)):
        owner = {"machine": platform.node(), "process": process, "begun": begun}
        (tmp_path / f"claim-{number}").write_text(json.dumps(owner))
        assert Lease(folder=tmp_path).take().name == f"claim-{number + 1}"


def test_a_claim_that_cannot_be_written_is_not_left_behind(tmp_path, monkeypatch) -> None:
    def full(_: str) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(lease_module.json, "dumps", full)
    with pytest.raises(WriteError, match=r"claim-0 could not be written: No space left on device"):
        Lease(folder=tmp_path).take()
    assert not list(tmp_path.iterdir())


def test_a_later_process_with_the_number_of_a_dead_owner_is_not_its_owner(tmp_path) -> None:
    lease = Lease(folder=tmp_path)
    claim = lease.take()
    assert claim is not None
    owner = json.loads(claim.read_text())
    assert lease.take() is None
    claim.write_text(json.dumps(owner | {"begun": "1"}))  # the same number, but of a process that began long before
    assert lease.take() is not None
