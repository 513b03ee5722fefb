"""What the processor can compute: AMX that is claimed is tried in a child process before anything relies on it.

Some virtual machines list AMX among the flags of the processor, the kernel grants it, and the first product in bfloat16
ends the process with SIGILL. Nothing in a process can survive that, so a child tries it. If the child dies, oneDNN is
limited to the best instructions with which another child lives. oneDNN reads its limit once, at its first use, so this
has to happen before torch computes. The answer is kept in the user's cache folder until the next boot.
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
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitrail.base.errors import VitrailError
from vitrail.base.files import atomic_write, cache_folder

LIMIT = "ONEDNN_MAX_CPU_ISA"
OLD_LIMIT = "DNNL_MAX_CPU_ISA"
"""The name that oneDNN had for it before, and still reads."""
CANDIDATES = ("AVX512_CORE_FP16", "AVX512_CORE_BF16", "AVX512_CORE", "AVX2")
"""What oneDNN may be limited to, the fastest first; none of them has AMX."""
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a death that is expected leaves no core file
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
"""What a child tries: the kinds of products of which our models consist, large enough for oneDNN to use AMX."""
SECONDS = 60.0
"""How long a child may take."""
_CPUINFO, _BOOT = Path("/proc/cpuinfo"), Path("/proc/sys/kernel/random/boot_id")
_DEATHS = tuple(-int(number) for number in (signal.SIGILL, signal.SIGSEGV, signal.SIGFPE))
_MOST_KEPT = 16
_log = logging.getLogger("vitrail")
_settled = False

Trial = Callable[[str | None], int | None]
"""Tries products with oneDNN limited to an instruction set, or not at all; the exit code, None if there is none."""


def settle(tell: Callable[[str], None] = _log.warning) -> None:
    """Limit oneDNN once in a process, before it computes; `tell` gets the sentence about it, if there is one."""
    global _settled
    if not _settled:
        _settled = True
        if sentence := limit_onednn():
            tell(sentence)


def limit_onednn(
    *,
    cpuinfo: Path = _CPUINFO,
    environ: MutableMapping[str, str] | None = None,
    trial: Trial | None = None,
    cache: Path | None = None,
) -> str | None:
    """Set ONEDNN_MAX_CPU_ISA if the processor claims AMX that ends processes; return a sentence about it, or None.

    A limit that is set already is the user's, or the parent's, and stays.
    """
    environ = os.environ if environ is None else environ
    if environ.get(LIMIT) or environ.get(OLD_LIMIT):
        return None
    described = describe_processor(cpuinfo)
    if "amx_" not in described.get("flags", ""):
        return None
    key = _key(described)
    found = _remembered(cache, key)
    if found is None:
        found = find_limit(trial or try_products)
        if found is not None:
            _remember(cache, key, found)
    if not found:
        return None
    if found not in CANDIDATES:
        return "bfloat16 products end the process on this processor, whatever oneDNN is limited to; use float32."
    environ[LIMIT] = found
    return f"this processor claims AMX, but its use ends the process; oneDNN is limited to {found} ({LIMIT})."


def describe_processor(cpuinfo: Path = _CPUINFO) -> dict[str, str]:
    """Return what the system tells of the first core; nothing where it has no such file, as elsewhere than on Linux."""
    found: dict[str, str] = {}
    with suppress(OSError), cpuinfo.open(encoding="utf-8", errors="replace") as file:
        for line in file:  # a file of hundreds of cores is made as it is read: stop after the first
            if not line.strip():
                break
            name, _, value = line.partition(":")
            found[name.strip()] = value.strip()
    return found


def find_limit(trial: Trial) -> str | None:
    """Return the limit that oneDNN needs: "" for none, "nothing" if none helps, None if that cannot be told.

    Only a child that was ended by the processor counts as a trap: one without torch or memory tells nothing.
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
        return subprocess.run(  # noqa: S603  (our own program, with the Python that runs already)
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


def _key(described: dict[str, str]) -> str:
    """Return a digest of everything on which the answer depends; a machine that moves or is updated boots again."""
    facts = [described.get(name, "") for name in ("vendor_id", "model name", "stepping", "microcode", "flags")]
    with suppress(OSError):
        facts.append(_BOOT.read_text().strip())
    with suppress(importlib.metadata.PackageNotFoundError):
        facts.append(importlib.metadata.version("torch"))
    facts += [platform.node(), platform.release(), PROGRAM]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _file(cache: Path | None) -> Path:
    return (cache_folder() if cache is None else cache) / "processor.json"


def _answers(path: Path) -> dict[str, Any]:
    """Read the answers that were found so far; a file that is not there, or damaged, has none."""
    try:
        answers = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return answers if isinstance(answers, dict) else {}


def _remembered(cache: Path | None, key: str) -> str | None:
    with suppress(RuntimeError):  # a user without a home
        answer = _answers(_file(cache)).get(key)
        return answer if answer in ("", "nothing", *CANDIDATES) else None
    return None


def _remember(cache: Path | None, key: str, answer: str) -> None:
    """Keep an answer for the processes to come; where nothing can be written they ask again."""
    with suppress(VitrailError, OSError, RuntimeError):
        path = _file(cache)
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = dict(list(_answers(path).items())[1 - _MOST_KEPT :]) | {key: answer}
        with atomic_write(path) as file:
            file.write(json.dumps(kept, indent=1).encode())
