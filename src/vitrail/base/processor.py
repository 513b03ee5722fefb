"""What the processor can compute: where it claims AMX, a child process tries it before torch relies on it.

Some virtual machines list AMX among the flags of the processor, the kernel grants it, and the first product in bfloat16
ends the process with SIGILL. A process cannot survive that, so a child tries it. If the child dies, oneDNN is limited
to the fastest instructions with which another child survives. oneDNN reads its limit once, at its first use: this has
to happen before torch computes. The answer is stored in the user's cache folder until the next boot.
"""

import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitrail.base.errors import VitrailError
from vitrail.base.files import atomic_write, cache_folder

LIMIT = "ONEDNN_MAX_CPU_ISA"
OLD_LIMIT = "DNNL_MAX_CPU_ISA"
"""The name that oneDNN had for it before, and still reads."""
CANDIDATES = ("AVX512_CORE_FP16", "AVX512_CORE_BF16", "AVX512_CORE", "AVX2")
"""Limits for oneDNN, the fastest first; none of them includes AMX."""
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an expected crash leaves no core file
import torch
import torch.nn.functional as F
torch.set_num_threads(1)
rows = torch.ones(256, 256, dtype=torch.bfloat16, requires_grad=True)
F.linear(rows, rows).sum().backward()
heads = rows.view(1, 4, 256, 64)
F.scaled_dot_product_attention(heads, heads, heads).sum().backward()
F.conv2d(rows.view(1, 64, 32, 32), rows.view(64, 64, 4, 4), stride=4).sum().backward()
assert rows.grad.isfinite().all()
"""
"""The program of a child: the kinds of products in our models, large enough for oneDNN to use AMX."""
SECONDS = 60.0
"""How long a child may take."""
_CPUINFO, _BOOT = Path("/proc/cpuinfo"), Path("/proc/sys/kernel/random/boot_id")
_DEATHS = tuple(-int(number) for number in (signal.SIGILL, signal.SIGSEGV, signal.SIGFPE))
_MOST_ANSWERS = 16
_log = logging.getLogger("vitrail")
_settled = _traps = False
TRAPS = "bfloat16 products end the process on this processor, whatever oneDNN is limited to; use float32."

Trial = Callable[[str | None], int | None]
"""Tries products with oneDNN limited to an instruction set, or not limited; returns the exit code, or None."""


def settle(note: Callable[[str], None] = _log.warning) -> None:
    """Limit oneDNN once in a process, before it computes; `note` receives the sentence about it, if there is one."""
    global _settled, _traps
    if not _settled:
        _settled = True
        if sentence := limit_onednn():
            _traps = sentence == TRAPS
            note(sentence)


def limit_onednn(
    *,
    cpuinfo: Path = _CPUINFO,
    environ: MutableMapping[str, str] | None = None,
    trial: Trial | None = None,
    cache: Path | None = None,
) -> str | None:
    """Set ONEDNN_MAX_CPU_ISA if the processor claims AMX that ends processes; return a sentence about it, or None.

    A limit that is already set stays: it is the user's or the parent's.
    """
    environ = os.environ if environ is None else environ
    if environ.get(LIMIT) or environ.get(OLD_LIMIT):
        return None
    processor = describe_processor(cpuinfo)
    if "amx_" not in processor.get("flags", ""):
        return None
    key = _key(processor)
    limit = _remembered(cache, key)
    if limit is None:
        limit = find_limit(trial or try_products)
        if limit is not None:
            _remember(cache, key, limit)
    if not limit:
        return None
    if limit not in CANDIDATES:
        return TRAPS
    environ[LIMIT] = limit
    return f"this processor claims AMX, but its use ends the process; oneDNN is limited to {limit} ({LIMIT})."


def describe_processor(cpuinfo: Path = _CPUINFO) -> dict[str, str]:
    """Return the fields of the first core; empty where the system has no such file (only Linux has it)."""
    facts: dict[str, str] = {}
    with suppress(OSError), cpuinfo.open(encoding="utf-8", errors="replace") as file:
        for line in file:  # the system writes this file while it is read, hundreds of cores long: stop after the first
            if not line.strip():
                break
            name, _, value = line.partition(":")
            facts[name.strip()] = value.strip()
    return facts


def has_bfloat16(cpuinfo: Path = _CPUINFO, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether products in bfloat16 have instructions of their own, which oneDNN may use and which work."""
    if _traps:
        return False
    flags, environ = describe_processor(cpuinfo), os.environ if environ is None else environ
    limit = environ.get(LIMIT) or environ.get(OLD_LIMIT, "")
    amx = "amx_bf16" in flags.get("flags", "").split() and not limit
    vector = "avx512_bf16" in flags.get("flags", "").split() and limit in ("", *CANDIDATES[:2])
    return amx or vector or "bf16" in flags.get("Features", "").split()


def find_limit(trial: Trial) -> str | None:
    """Return the limit that oneDNN needs: "" for none, "nothing" if no limit helps, None if unknown.

    Only a child that a processor signal ended counts as a trap; one that failed for lack of torch or memory does not.
    """
    code = trial(None)
    if code not in _DEATHS:
        return "" if code == 0 else None
    return next((limit for limit in CANDIDATES if trial(limit) == 0), "nothing")


def try_products(limit: str | None, command: tuple[str, ...] | None = None) -> int | None:
    """Run the trial in a child process and return its exit code, below 0 for a signal; None if it did not end."""
    if not (command or sys.executable):
        return None
    environment = {name: value for name, value in os.environ.items() if name not in (LIMIT, OLD_LIMIT)}
    environment |= {} if limit is None else {LIMIT: limit}
    words = command or (sys.executable, "-P", "-c", PROGRAM)
    try:
        return subprocess.run(  # noqa: S603  (our own program, with the Python that is running)
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None


def _key(processor: dict[str, str]) -> str:
    """Return a digest of everything on which the answer depends; a machine that moves or is updated boots again."""
    facts = [processor.get(name, "") for name in ("vendor_id", "model name", "stepping", "microcode", "flags")]
    with suppress(OSError):
        facts.append(_BOOT.read_text(encoding="utf-8").strip())
    with suppress(importlib.metadata.PackageNotFoundError):
        facts.append(importlib.metadata.version("torch"))
    facts += [platform.node(), platform.release(), PROGRAM]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _file(cache: Path | None) -> Path:
    return (cache_folder() if cache is None else cache) / "processor.json"


def _answers(path: Path) -> dict[str, Any]:
    """Read the stored answers; a file that is missing or damaged has none."""
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return answers if isinstance(answers, dict) else {}


def _remembered(cache: Path | None, key: str) -> str | None:
    with suppress(RuntimeError):  # a user without a home
        answer = _answers(_file(cache)).get(key)
        return answer if answer in ("", "nothing", *CANDIDATES) else None
    return None


def _remember(cache: Path | None, key: str, answer: str) -> None:
    """Store an answer for later processes; where nothing can be written they try again."""
    with suppress(VitrailError, OSError, RuntimeError):
        path = _file(cache)
        path.parent.mkdir(parents=True, exist_ok=True)
        answers = dict(list(_answers(path).items())[1 - _MOST_ANSWERS :]) | {key: answer}
        with atomic_write(path) as file:
            file.write(json.dumps(answers, indent=1).encode())
