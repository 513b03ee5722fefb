"""Every format by name."""

from pathlib import Path
from typing import Literal, get_args

from vitrail.base.errors import CheckpointError, did_you_mean
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats import bit, google, huggingface, timm, torchvision
from vitrail.model.resnet import ResNetConfig

FormatName = Literal["vitrail", "google", "google-linen", "big-vision", "timm", "huggingface", "torchvision"]


def write_any(contents: Contents, path: Path, name: FormatName, *, lossy: bool = False) -> Contents:
    """Write a file of somebody else's format, and return what was written, with notes."""
    if name not in get_args(FormatName):
        known = get_args(FormatName)
        raise CheckpointError(
            f"there is no format {name!r}; choose one of {', '.join(known)}.{did_you_mean(name, known)}"
        )
    resnet = isinstance(contents.config, ResNetConfig)
    _check_suffix(path, name)
    match name:
        case "google" if resnet:
            written = bit.write_google(contents, path, lossy=lossy)
        case "google" | "google-linen" | "big-vision":
            written = google.write(contents, path, dialect=name, lossy=lossy)
        case "timm" if resnet:
            written = bit.write_timm(contents, path, lossy=lossy)
        case "timm":
            written = timm.write(contents, path, lossy=lossy)
        case "huggingface":
            written = huggingface.write(contents, path, lossy=lossy)
        case _:
            written = torchvision.write(contents, path, lossy=lossy)
    return written.noting(*_left_behind(contents, path))


def _check_suffix(path: Path, name: str) -> None:
    """Refuse a file name that would mislead whoever reads it next."""
    needed = {"google": ".npz", "google-linen": ".npz", "big-vision": ".npz", "torchvision": ".safetensors"}.get(name)
    if name == "timm" and path.suffix in (".npz", ".pth", ".pt", ".bin"):
        needed = ".safetensors"
    if needed is not None and path.suffix != needed:
        raise CheckpointError(
            f"a {name} file ends in {needed}, but {path} does not; name it {path.with_suffix(needed)}."
        )


def _left_behind(contents: Contents, path: Path) -> list[str]:
    """Say what a format has no place for."""
    if path.suffix != ".npz":
        return []
    kept = [what for what in ("labels", "preprocessing") if getattr(contents, what)]
    kept += ["provenance"] * bool(contents.provenance.keys() - {"versions"})
    return [f"an .npz has no place for {', '.join(kept)}; keep the {contents.format} file too."] if kept else []
