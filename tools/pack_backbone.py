"""Make the backbone of the package from a finished run.

    vitrail train PHOTOS --recipe backbone --out RUN
    python tools/pack_backbone.py RUN --command "vitrail train ..." --data "..."

The head goes, since other photos have other classes; the weights are stored in float16. Everything that the model file
of the run states stays in the new one, with the command, a description of the data and its licence beside it.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

import vitrail
from vitrail.checkpoint.files import assemble, read
from vitrail.checkpoint.transfer import transfer
from vitrail.published.bundled import backbone_path

MOST_BYTES = 8_000_000
LICENCE = (
    "weights: Apache-2.0, as the package; the photos are of ImageNet, whose owners allow research and education that "
    "is not commercial, and are not part of the package"
)


def pack(run: Path, target: Path, *, command: str, data: str) -> Path:
    """Write the weights of a run without its head, in half precision."""
    contents = read(run / "model.safetensors")
    model = assemble(replace(transfer(contents, {"num_classes": 0}), labels=None)).half()
    provenance = {**contents.provenance, "command": command, "data": data, "licence": LICENCE, "stored": "float16"}
    vitrail.save(model, target, provenance=provenance | {"parent": contents.digest})
    if any(not bool(tensor.isfinite().all()) for tensor in model.state_dict().values()):
        raise SystemExit("a weight is too large for float16.")
    if target.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes, but may have {MOST_BYTES:,} at most.")
    return target


def main() -> None:
    """Write the file, and print its size and digest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--command", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--target", type=Path, default=backbone_path())
    arguments = parser.parse_args()
    path = pack(arguments.run, arguments.target, command=arguments.command, data=arguments.data)
    print(f"{path}: {path.stat().st_size:,} bytes, sha256 {vitrail.show(path).digest}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
