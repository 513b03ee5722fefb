"""Describe a file of weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.readable import value_text
from vitrail.base.table import Table, Tabular
from vitrail.checkpoint.files import ZERO_HEAD, has_zero_head
from vitrail.checkpoint.store import describe
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size
from vitrail.verbs.weights import count_parameters, open_weights


@dataclass(frozen=True, kw_only=True, repr=False)
class Description(Tabular):
    """The contents of a file of weights."""

    file: str
    """The file or folder."""
    format: str
    """The layout of the file: vitrail, google, timm, ..."""
    parameters: int
    """Stored values."""
    types: tuple[str, ...]
    """The types of the stored values, such as float32."""
    config: ModelConfig
    """The model, with the numerics of the library that it comes from."""
    labels: tuple[str, ...] | None
    """The name of each class."""
    preprocessing: Preprocessing | None
    """How images become input."""
    provenance: Mapping[str, Any]
    """The origin of the weights."""
    digest: str | None
    """SHA-256 that the file carries and that was checked."""
    notes: tuple[str, ...]
    """Notes about the file, a sentence each."""
    settings: Mapping[str, Any]
    """Config, numerics, labels, preprocessing and provenance as plain values for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "file": self.file,
            "format": self.format,
            "parameters": self.parameters,
            "types": list(self.types),
            **self.settings,
            "digest": self.digest,
            "notes": list(self.notes),
        }

    def tables(self) -> list[Table]:
        """Return one table, with settings inside others below them and further to the right."""
        parts = {name: self.settings[name] or {} for name in ("config", "numerics", "preprocessing", "provenance")}
        rows = (
            ("format", self.format),
            ("parameters", f"{self.parameters:,}"),
            ("types", ", ".join(self.types)),
            *_nested(parts),
            ("labels", "none" if self.labels is None else value_text(list(self.labels))),
        )
        digest = f"sha256: {self.digest or 'none in this format'}"  # below the table, where a line has room for it
        notes = (digest, *(f"note: {note}" for note in self.notes))
        return [Table(title=self.file, columns=("", "value"), rows=rows, notes=notes)]


def show(
    path: str | Path,
    *,
    pickle: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
) -> Description:
    """Describe a file of weights: config, parameters, labels, preprocessing, provenance, digest.

    The file or folder may be of any format. `image_size` and `num_heads` are for files of other libraries that do not
    record them. `pickle` lets torch's own files (.pth, .bin) be opened, of which only tensors are read.

    >>> description = vitrail.show("model.safetensors")
    >>> description.format, description.config.num_classes, description.labels
    ('vitrail', 2, ('ant', 'bee'))
    """
    contents = open_weights(path, pickle=pickle, image_size=image_size, num_heads=num_heads, architecture=architecture)
    types = sorted({str(spec.dtype).removeprefix("torch.") for spec in contents.tensors.specs.values()})
    return Description(
        file=str(path),
        format=contents.format,
        parameters=count_parameters(contents),
        types=tuple(types),
        config=contents.config,
        labels=contents.labels,
        preprocessing=contents.preprocessing,
        provenance=contents.provenance,
        digest=contents.digest,
        notes=(*contents.notes, *((ZERO_HEAD,) if has_zero_head(contents) else ())),
        settings=describe(contents),
    )


def _nested(settings: Mapping[str, Any], indent: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            rows += [(f"{indent}{name}", ""), *_nested(value, f"{indent}  ")]
        else:
            rows.append((f"{indent}{name}", value_text(value)))
    return rows
