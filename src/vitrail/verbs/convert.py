"""Write a model in another format."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.files import check_writable, path_of
from vitrail.base.outputs import Kind, check_replaceable
from vitrail.base.table import Table, Tabular
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import settled, sha256, with_versions
from vitrail.checkpoint.formats.all import write_any
from vitrail.checkpoint.formats.detect import holds_format
from vitrail.checkpoint.formats.names import FormatName
from vitrail.checkpoint.store import write_store
from vitrail.model.patches import Size
from vitrail.published.find import located
from vitrail.verbs.weights import count_parameters, open_weights


@dataclass(frozen=True, kw_only=True, repr=False)
class Conversion(Tabular):
    """A file that was written, and where its weights come from."""

    source: Path
    """The file or folder that was read."""
    source_format: str
    """Its layout."""
    path: Path
    """The file or folder that was written."""
    format: FormatName
    """Its layout."""
    parameters: int
    """Stored values."""
    digest: str | None
    """SHA-256 that the written file carries; None in other libraries' formats."""
    notes: tuple[str, ...]
    """Changes and omissions, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "source": str(self.source),
            "from": self.source_format,
            "destination": str(self.path),
            "to": self.format,
            "parameters": self.parameters,
            "digest": self.digest,
            "notes": list(self.notes),
        }

    def sentences(self) -> tuple[str, ...]:
        """Return a summary, and the notes."""
        summary = f"{self.source} ({self.source_format}) -> {self.path} ({self.format}): {self.parameters:,} parameters"
        return (summary, *(f"note: {note}" for note in self.notes))

    def tables(self) -> list[Table]:
        """Return the sentences."""
        return [Table(notes=self.sentences())]


def convert(
    source: str | Path,
    target: str | Path,
    *,
    to: FormatName = "vitrail",
    lossy: bool = False,
    force: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
) -> Conversion:
    """Write a model in another format: Google, big_vision, timm, Hugging Face, torchvision or our own.

    The source may be of any of these, and is recognised by its contents; torch's pickled files (.pth, .bin) are read
    too, but only their tensors. The target is a file, or for Hugging Face and timm a folder. A model that `to`
    cannot hold is refused; with `lossy`, the numerics of that library may replace the model's own, which changes
    outputs a little. A target that is not a converted model of that format is replaced only with `force`, and the
    source never. `image_size` and `num_heads` are for sources that do not record them.

    >>> conversion = vitrail.convert("model.safetensors", "model.npz", to="google", lossy=True)
    >>> conversion.format, vitrail.load(conversion.path).config.num_classes
    ('google', 2)
    """
    source, target = path_of(source, "source"), path_of(target, "destination")
    _check_target(located(source), target, to, force=force)
    contents = settled(
        open_weights(source, pickle=True, image_size=image_size, num_heads=num_heads, architecture=architecture)
    )
    result = _write(contents, source, target, to, lossy)
    return Conversion(
        source=source,
        source_format=contents.format,
        path=target,
        format=to,
        parameters=count_parameters(result),
        digest=result.digest,
        notes=result.notes,
    )


def _check_target(source: Path, target: Path, to: FormatName, *, force: bool) -> None:
    """Refuse to replace the source, or anything but a converted model: a run's folder, notes, a trained model."""
    kind = Kind(
        name=f"a converted model of the format {to}",
        holds=lambda path: holds_format(path, to),
    )
    files = list(source.iterdir()) if source.is_dir() else []
    check_replaceable(target, kind, inputs=(source, *files), force=force)
    if not target.is_dir():
        check_writable(target)


def _write(contents: Contents, source: Path, target: Path, to: FormatName, lossy: bool) -> Contents:
    if to != "vitrail":
        return write_any(contents, target, to, lossy=lossy)
    parent = contents.digest or sha256(source)
    history = {"source": {"file": source.name, "format": contents.format}, "parent": parent}
    contents = with_versions(contents.noting(provenance={**contents.provenance, **history}))
    return contents.noting(digest=write_store(contents, target))
