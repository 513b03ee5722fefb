"""Load every Vision Transformer of timm, transformers and torchvision, and compare the outputs.

Run it in the environment that benchmarks/peers.sh makes:

    python benchmarks/sweep                             # prints a line for every verdict that is not exact
    python benchmarks/sweep --log FILE.jsonl            # keeps every verdict, and resumes what was stopped
    python benchmarks/sweep --minutes 9                 # stops after about that time
    python benchmarks/sweep --only timm --match 'dinov3|clip'

Every architecture is built at depth 2 with random weights, moved off their initial values (norms, biases, scales,
positions and tokens too), and saved as its library does. Vitrail loads it and computes the same images. A verdict is

    exact       the largest difference is below 1e-5 of the largest output
    asked       the file leaves something open, and a sentence names the setting that answers it
    refused     a sentence says why the file is not read
    unbuilt     its library does not build it like this, or it is too large here
    unchecked   it loads, but its library gave nothing to compare with
    wrong       anything else; there must be none
"""

import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import argparse
import gc
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import of_timm
import of_torchvision
import of_transformers
import published_tags
import torch
from verdicts import Ledger

LIBRARIES = {"torchvision": of_torchvision, "transformers": of_transformers, "timm": of_timm, "tags": published_tags}


def sweep(library: str, match: str, ledger: Ledger, end: float) -> bool:
    """Try what is not tried yet; tell whether that was all of it."""
    module = LIBRARIES[library]
    for name in filter(re.compile(match).search, module.names()):
        if ledger.has(module.LIBRARY, name):
            continue
        if time.monotonic() > end:
            return False
        with tempfile.TemporaryDirectory() as folder:
            verdicts = list(module.verdicts(name, Path(folder)))
        ledger.add(verdicts)
        gc.collect()  # models hold themselves in cycles, and each is large
        for verdict in verdicts:
            if verdict.verdict != "exact":
                print(f"{verdict.verdict:9} {name}, {verdict.way}: {verdict.detail}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=LIBRARIES)
    parser.add_argument("--match", default="")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    ledger, end = Ledger(arguments.log), time.monotonic() + 60 * arguments.minutes
    libraries = [arguments.only] if arguments.only else list(LIBRARIES)
    whole = all(sweep(library, arguments.match, ledger, end) for library in libraries)
    counts = Counter((verdict.library, verdict.way.partition(",")[0], verdict.verdict) for verdict in ledger.verdicts)
    for (library, way, verdict), count in sorted(counts.items()):
        print(f"{library:22} {way:28} {verdict:10} {count}")
    print("all of it" if whole else "stopped before the end; run it again to resume")
    return int(any(verdict.verdict == "wrong" for verdict in ledger.verdicts))


if __name__ == "__main__":
    sys.exit(main())
