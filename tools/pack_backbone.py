"""Make the backbone of the package from a run, finished or stopped.

    vitrail train PHOTOS --recipe backbone --out RUN
    python tools/pack_backbone.py RUN --command "vitrail train ..." --data "..."

Of a run that was stopped, the averaged weights of its newest checkpoint are taken. The head goes, since other photos
have other classes; the weights are stored in float16. The settings of the run stay in the file, with the command, a
description of the data and its licence beside them. `--whole` also writes the model with its head, to measure it.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import vitrail
from vitrail.base.settings import to_dict
from vitrail.checkpoint.files import assemble, read
from vitrail.checkpoint.transfer import transfer
from vitrail.published.bundled import backbone_path
from vitrail.runs.folder import RunFolder
from vitrail.runs.model_file import write_model
from vitrail.training.keeper import checkpoint_paths, read_checkpoint

MOST_BYTES = 8_000_000
AVERAGE = "average.model."
LICENCE = (
    "weights: Apache-2.0, as the package; the photos are of ImageNet, whose owners allow research and education that "
    "is not commercial, and are not part of the package"
)


def write_whole_model(run: Path, path: Path) -> None:
    """Write the averaged weights of a run's newest checkpoint as a model with its head."""
    config, checkpoint = RunFolder(path=run).read_config(), read_checkpoint(checkpoint_paths(run / "checkpoints")[0])
    tensors, steps = checkpoint.tensors, checkpoint.progress.step
    weights = {name.removeprefix(AVERAGE): tensors[name] for name in tensors if name.startswith(AVERAGE)}
    metrics = {"weights": "average", "steps": steps, "epochs": steps * config.batch / config.facts.images}
    write_model(config, weights, path, {"metrics": metrics})


def pack(model: Path, target: Path, added: dict[str, Any]) -> None:
    """Write a model without its head, in half precision."""
    contents = read(model)
    bare = assemble(replace(transfer(contents, {"num_classes": 0}), labels=None)).half()
    if any(not bool(tensor.isfinite().all()) for tensor in bare.state_dict().values()):
        raise SystemExit("a weight is too large for float16.")
    provenance = {**contents.provenance, **added, "licence": LICENCE, "stored": "float16", "parent": contents.digest}
    vitrail.save(bare, target, provenance=provenance)
    if target.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes, but may have {MOST_BYTES:,} at most.")


def main() -> None:
    """Write the file, and print its size and digest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--command", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--began", type=Path, help="the run that this one extends; its stages are recorded")
    parser.add_argument("--whole", type=Path, help="where the model of a stopped run goes, with its head")
    parser.add_argument("--target", type=Path, default=backbone_path())
    arguments = parser.parse_args()
    model = arguments.run / "model.safetensors"
    if not model.is_file():
        model = arguments.whole or arguments.target.with_name("whole.safetensors")
        write_whole_model(arguments.run, model)
    added: dict[str, Any] = {"command": arguments.command, "data": arguments.data}
    if arguments.began:
        began = to_dict(RunFolder(path=arguments.began).read_config())
        added["began"] = {"stages": began["stages"], "steps": began["steps"]}
    pack(model, arguments.target, added)
    path = arguments.target
    print(f"{path}: {path.stat().st_size:,} bytes, sha256 {vitrail.show(path).digest}")


if __name__ == "__main__":
    main()
