"""The front door: `load` reads a model from any supported file, `save` writes one."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from vitrail.base.errors import CheckpointError
from vitrail.base.files import path_of
from vitrail.base.ranks import as_device
from vitrail.base.tensors import from_tensors
from vitrail.checkpoint.assembly import assemble
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.all import write_any
from vitrail.checkpoint.formats.detect import read_any
from vitrail.checkpoint.formats.names import FormatName
from vitrail.checkpoint.store import check_labels, check_pixels, versions, write_store
from vitrail.checkpoint.transfer import transfer
from vitrail.data.preprocessing import PRESETS, Preprocessing, preset
from vitrail.model.build import as_size
from vitrail.model.checks import check_size
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.published.find import find_published, located

ZERO_HEAD = "the head is all zeros, so every class gets the same score: the model is there to be fine-tuned."
ANSWERS = ("architecture", "preprocessing")
"""What may be said of a file beside fields of its config."""
_log = logging.getLogger("vitrail")


def load(
    path: str | Path,
    *,
    pickle: bool = False,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    **overrides: Any,
) -> Model:
    """Read a model from a file or folder of any supported format, ready to use.

    The name of a published model that was pulled stands for its path, and `backbone` for the one in the package.

    Overrides are fields of its config: a new `num_classes` starts the head at zero, a new `image_size` or
    `patch_size` resizes what depends on it; both are noted. What a file of another library does not state is given
    here too: `num_heads`, `gelu`, the `image_size` of a grid that is not square; `preprocessing`, by the name of a
    preset or as a `Preprocessing`; or `architecture`, the model's name in its library, which answers all of these,
    or a preset's. `pickle=True` lets torch's own files (`.pth`, `.bin`) be opened. `dtype` is the type of the
    weights; None takes float32 for files of half precision, and the file's own for others. The model's `info` has
    labels, preprocessing, provenance, digest and notes.
    """
    place = as_device(device)
    contents = read(path, pickle=pickle, resident=True, **overrides)
    if contents.format != "vitrail" and has_zero_head(contents):
        contents = contents.noting(ZERO_HEAD)
    for note in contents.notes:
        _log.warning("%s: %s", path, note)
    return assemble(contents, device=place, dtype=dtype)


def read(path: str | Path, *, pickle: bool = False, resident: bool = False, **overrides: Any) -> Contents:
    """Read a model's description from a file, with overrides applied; tensors are read when they are needed.

    The name of a published model stands for its path, and for what its file does not state. `resident` reads all
    tensors at once, after which the file may change.
    """
    place = find_published(path)
    hints = dict(overrides)
    if hints.get("architecture") in PRESETS:
        hints.setdefault("preprocessing", hints.pop("architecture"))
    if place is not None:
        hints = {**place.hints, **hints}
    for name in hints.keys() & {"image_size", "patch_size"}:
        hints[name] = as_size(hints[name])
        check_size(name, hints[name])
    file = path_of(path, "path") if place is None else place.path
    contents = read_any(file, hints, pickle=pickle, resident=resident)
    if place is not None and place.record is None:  # the backbone, of half precision only to be small
        contents = contents.noting(tensors=contents.tensors.in_float32())
    if hints.get("preprocessing") is not None:
        contents = contents.noting(preprocessing=_answered_pixels(hints["preprocessing"], contents.config), doubt=None)
    settings = {name: value for name, value in hints.items() if name not in ANSWERS}
    pixels, own = contents.preprocessing, contents.config
    if pixels is not None and pixels.image_size != own.image_size and not own.any_size:
        settings.setdefault("image_size", pixels.image_size)  # images are brought to that size, as DINOv2's are
    return transfer(contents, settings)


def save(
    model: Model,
    path: str | Path,
    *,
    labels: Sequence[str] | None = None,
    preprocessing: Preprocessing | None = None,
    provenance: Mapping[str, Any] | None = None,
    to: FormatName = "vitrail",
    lossy: bool = False,
) -> Path:
    """Write a model as one file that carries everything, or in somebody else's format.

    What is not given is what `load` attached to the model. `provenance` may hold anything that JSON can: data,
    recipe, metrics; versions and the parent file's digest are added. With `lossy`, another library's numerics may
    take the place of the model's own.
    """
    path = Path(path)
    contents = describe_model(model, labels=labels, preprocessing=preprocessing, provenance=provenance)
    if to == "vitrail":
        write_store(contents, path)
        return path
    for note in write_any(contents, path, to, lossy=lossy).notes:
        _log.warning("%s: %s", path, note)
    return path


def settled(contents: Contents) -> Contents:
    """Refuse a file that leaves open what must be known to use it."""
    if contents.doubt is not None:
        raise CheckpointError(contents.doubt)
    return contents


def has_zero_head(contents: Contents) -> bool:
    """Return whether the file itself has a head of zeros, as the first ImageNet-21k files do."""
    kernel = f"{contents.config.module.head_prefix}weight"
    return (
        kernel in contents.tensors
        and not contents.tensors[kernel].any()
        and not any("reset to zero" in note for note in contents.notes)
    )


def head_notes(model: Model) -> tuple[str, ...]:
    """Return a note that the head of a model is all zeros, unless its notes have one."""
    head, notes = model.last_linear, model.info.notes
    known = ZERO_HEAD in notes or any("reset to zero" in note for note in notes)
    return () if head is None or known or bool(head.weight.any()) else (ZERO_HEAD,)


def describe_model(
    model: Model,
    *,
    labels: Sequence[str] | None = None,
    preprocessing: Preprocessing | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Contents:
    """Gather what a file will state about a model in memory."""
    info = model.info
    attached = info.labels if labels is None else tuple(labels)
    check_labels(attached, model.config.num_classes)
    pixels = preprocessing or info.preprocessing
    if pixels is None and info.doubt is not None:
        raise CheckpointError(info.doubt)
    check_pixels(pixels, model.config)
    history = dict(info.provenance if provenance is None else provenance)
    if info.digest is not None and "parent" not in (provenance or {}):
        history["parent"] = info.digest
    state = model.state_dict()
    if any(tensor.is_meta for tensor in state.values()):
        raise CheckpointError(
            "the model is on the device 'meta' and has no weights; build it on another device to save it."
        )
    contents = Contents(
        format="vitrail",
        config=model.config,
        tensors=from_tensors(state, "the model"),
        labels=attached,
        preprocessing=pixels,
        provenance=history,
    )
    return with_versions(contents)


def with_versions(contents: Contents) -> Contents:
    """Add what a file is written with to its provenance, unless its author has."""
    return contents.noting(
        provenance={**contents.provenance, "versions": contents.provenance.get("versions", versions())}
    )


def _answered_pixels(answer: Any, config: ModelConfig) -> Preprocessing:
    """Return the preprocessing that the user names or gives."""
    if isinstance(answer, Preprocessing):
        check_pixels(answer, config)
        return answer
    return preset(answer, image_size=config.image_size, channels=config.channels)


def sha256(path: str | Path) -> str:
    """Compute the digest of a file, or of the weights of a folder."""
    path = located(path)
    names = ("model.safetensors", "pytorch_model.bin")
    file = next((path / name for name in names if (path / name).is_file()), path) if path.is_dir() else path
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def weights_digest(model: Model) -> str:
    """Digest the weights as they are now: the digest of a file would outlive a change in memory."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
