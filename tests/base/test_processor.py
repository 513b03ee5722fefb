import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vitrail.base import processor
from vitrail.base.processor import CANDIDATES, LIMIT, describe_processor, find_limit, limit_onednn, try_products

AMX = "processor\t: 0\nmodel name\t: A processor\nflags\t\t: fpu avx512f amx_bf16 amx_tile amx_int8\nbugs\t\t:\n\n"
SECOND = AMX.replace("A processor", "Another").replace("processor\t: 0", "processor\t: 1")
SUICIDE = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


class Machine:
    """A processor that kills each child that may use instructions it lacks."""

    def __init__(self, folder: Path, best: str | None, cpuinfo: str = AMX + SECOND) -> None:
        self.environ: dict[str, str] = {}
        self.tried: list[str | None] = []
        self.best, self.folder = best, folder
        (folder / "cpuinfo").write_text(cpuinfo)

    def trial(self, limit: str | None) -> int:
        self.tried.append(limit)
        lives = self.best == "all" or (limit is not None and self.best in CANDIDATES[: CANDIDATES.index(limit) + 1])
        return 0 if lives else -signal.SIGILL

    def settle(self) -> str | None:
        return limit_onednn(
            cpuinfo=self.folder / "cpuinfo", environ=self.environ, trial=self.trial, cache=self.folder / "caches"
        )


def test_amx_that_ends_processes_is_not_used(tmp_path) -> None:
    machine = Machine(tmp_path, "AVX512_CORE_BF16")
    sentence = machine.settle()
    assert machine.environ == {LIMIT: "AVX512_CORE_BF16"}
    assert machine.tried == [None, "AVX512_CORE_FP16", "AVX512_CORE_BF16"]
    assert sentence is not None
    assert "claims AMX" in sentence
    assert "limited to AVX512_CORE_BF16" in sentence
    assert machine.settle() is None  # the limit is set by now, for this process and its children


def test_amx_that_works_is_used_and_tried_once(tmp_path) -> None:
    machine = Machine(tmp_path, "all")
    assert [machine.settle(), machine.settle()] == [None, None]
    assert (machine.environ, machine.tried) == ({}, [None])


def test_the_answer_is_kept_for_other_processes_until_something_changes(tmp_path, monkeypatch) -> None:
    first, second = Machine(tmp_path, "AVX512_CORE"), Machine(tmp_path, "AVX512_CORE")
    assert first.settle() == second.settle()
    assert (second.environ, second.tried) == ({LIMIT: "AVX512_CORE"}, [])
    monkeypatch.setattr(processor, "_BOOT", tmp_path / "cpuinfo")
    updated = Machine(tmp_path, "all")
    assert updated.settle() is None
    assert updated.tried == [None]
    assert len(json.loads((tmp_path / "caches/processor.json").read_text())) == 2


def test_only_the_last_answers_are_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(processor, "_BOOT", tmp_path / "boot")
    for number in range(20):
        (tmp_path / "boot").write_text(str(number))
        Machine(tmp_path, "all").settle()
    assert len(json.loads((tmp_path / "caches/processor.json").read_text())) == 16


def test_a_processor_that_traps_whatever_the_limit_is_reported(tmp_path) -> None:
    machine = Machine(tmp_path, None)
    sentence = machine.settle()
    assert (machine.environ, machine.tried) == ({}, [None, *CANDIDATES])
    assert "use float32" in str(sentence)


def test_where_every_limit_traps_nothing_computes_in_bfloat16(tmp_path, monkeypatch) -> None:
    (tmp_path / "cpuinfo").write_text("flags\t: fpu avx512_bf16 amx_tile amx_bf16\n")
    monkeypatch.setattr(processor, "_settled", False)
    monkeypatch.setattr(processor, "_traps", False)
    monkeypatch.setattr(processor, "limit_onednn", lambda: processor.TRAPS)
    assert processor.has_bfloat16(tmp_path / "cpuinfo", {})
    assert not processor.has_bfloat16(tmp_path / "cpuinfo", {"DNNL_MAX_CPU_ISA": "AVX2"})
    processor.settle(lambda _: None)
    assert not processor.has_bfloat16(tmp_path / "cpuinfo", {})


@pytest.mark.parametrize("cpuinfo", ["", "flags\t: fpu avx512f\n\nflags\t: amx_tile\n", "model name\t: amx_tile\n"])
def test_without_a_claim_nothing_is_tried(tmp_path, cpuinfo) -> None:
    machine = Machine(tmp_path, None, cpuinfo)
    assert machine.settle() is None
    assert machine.tried == []
    assert not (tmp_path / "caches").exists()


@pytest.mark.parametrize("name", [LIMIT, "DNNL_MAX_CPU_ISA"])
def test_a_limit_that_the_user_set_stays(tmp_path, name) -> None:
    machine = Machine(tmp_path, None)
    machine.environ = {name: "AVX2"}
    assert machine.settle() is None
    assert (machine.environ, machine.tried) == ({name: "AVX2"}, [])


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"x": 1}', b"\xff\xfe"])
def test_with_a_damaged_cache_the_trial_runs_again(tmp_path, text) -> None:
    (tmp_path / "caches").mkdir()
    (tmp_path / "caches/processor.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    machine = Machine(tmp_path, "AVX2")
    machine.settle()
    assert machine.environ == {LIMIT: "AVX2"}


def test_an_unknown_answer_in_the_cache_is_ignored(tmp_path) -> None:
    Machine(tmp_path, "AVX2").settle()
    cache = tmp_path / "caches/processor.json"
    cache.write_text(cache.read_text().replace("AVX2", "anything"))
    machine = Machine(tmp_path, "AVX512_CORE")
    machine.settle()
    assert machine.environ == {LIMIT: "AVX512_CORE"}


def test_a_cache_that_cannot_be_written_is_not_needed(tmp_path) -> None:
    (tmp_path / "caches").write_text("a file in the place of the folder")
    machine = Machine(tmp_path, "AVX2")
    assert machine.settle() is not None
    assert machine.environ == {LIMIT: "AVX2"}


@pytest.mark.parametrize("code", [1, -signal.SIGKILL, None])
def test_a_child_that_fails_for_another_reason_decides_nothing(tmp_path, code) -> None:
    assert find_limit(lambda _: code) is None
    machine = Machine(tmp_path, None)
    machine.trial = lambda _: code  # type: ignore[method-assign]
    assert machine.settle() is None
    assert not (tmp_path / "caches").exists()


def test_a_child_that_the_processor_kills_is_survived() -> None:
    assert try_products(None, (sys.executable, "-c", SUICIDE)) == -signal.SIGILL
    assert find_limit(lambda limit: try_products(limit, (sys.executable, "-c", SUICIDE))) == "nothing"
    assert try_products(None, ("/there/is/no/such/program",)) is None


def test_a_child_sees_the_limit_that_is_tried_and_no_other(monkeypatch) -> None:
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "SSE41")
    program = f"import os; assert (os.environ.get('{LIMIT}'), os.environ.get('DNNL_MAX_CPU_ISA')) == (%r, None)"
    assert try_products("AVX2", (sys.executable, "-c", program % "AVX2")) == 0
    assert try_products(None, (sys.executable, "-c", program % None)) == 0


def test_the_trial_runs_to_its_end_here() -> None:
    assert try_products(os.environ.get(LIMIT)) == 0


def test_this_processor_is_described() -> None:
    if Path("/proc/cpuinfo").is_file():
        assert describe_processor()
    assert describe_processor(Path("/there/is/no/such/file")) == {}


PYTHON = """
import os, pathlib
from vitrail.base import processor
calls = []
processor.limit_onednn = lambda: calls.append(1) or "the sentence"
{work}
assert calls == [1], calls
"""


@pytest.mark.parametrize(
    ("work", "stderr"),
    [
        ("import vitrail; vitrail.create('Ti/16'); vitrail.create('R50x1')", "the sentence\n"),
        (
            "import vitrail, vitrail.cli.computing as c\nwith c.computing(1, 'cpu'): vitrail.create('Ti/16')",
            "vitrail: the sentence\n",
        ),
    ],
)
def test_the_limit_is_set_and_reported_once_before_a_model_computes(work, stderr) -> None:
    done = subprocess.run([sys.executable, "-c", PYTHON.format(work=work)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, stderr)


LATE = """
import os
import torch
import vitrail
from vitrail.base import processor
torch.manual_seed(0)  # what a program does with torch before it makes a model
processor.limit_onednn = lambda: os.environ.__setitem__(processor.LIMIT, "AVX2")
model = vitrail.create("Ti/16", image_size=32)
torch.nn.functional.gelu(torch.randn(64))
"""


def test_onednn_heeds_a_limit_that_is_set_after_torch_was_imported() -> None:
    environ = {name: value for name, value in os.environ.items() if name != LIMIT} | {"ONEDNN_VERBOSE": "1"}
    done = subprocess.run([sys.executable, "-c", LATE], env=environ, capture_output=True, text=True, check=True)
    messages = [line for line in done.stdout.splitlines() if ",info,cpu,isa:" in line]
    if not messages:
        pytest.skip("torch was built without oneDNN's messages")
    assert "AVX2" in messages[0]
    assert "AVX-512" not in messages[0]
