"""What `vitrail.export` returns."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.evaluation.bootstrap import Interval
from vitrail.runtime.write import ExportFormat

IMAGES = 32
"""Images of the embedded sample on which the file is compared with the model."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Export(Tabular):
    """An exported file, and how it compares with the model."""

    out: Path
    """The file; OpenVINO has its weights beside it, in a `.bin`."""
    format: ExportFormat
    """onnx, openvino or pt2."""
    precision: str
    """The numbers that it computes with."""
    size: int
    """Bytes."""
    outputs: tuple[str, ...]
    """What the graph returns."""
    agreement: float | None
    """The share of images with the same first class as the model gives, resized by the graph itself; None where the
    file was not run, or has no classes."""
    difference: float | None
    """The largest difference of a logit, for the same pixels, as a share of their range."""
    accuracies: tuple[tuple[str, Interval], ...] = ()
    """The accuracy in float32 and in int8 with its 95% interval, on calibration data with labels."""
    notes: tuple[str, ...] = ()
    """What was done, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "out": str(self.out),
            "format": self.format,
            "precision": self.precision,
            "size": self.size,
            "outputs": list(self.outputs),
            "agreement": self.agreement,
            "difference": self.difference,
            "accuracies": {name: asdict(accuracy) for name, accuracy in self.accuracies},
            "notes": list(self.notes),
        }

    def tables(self) -> list[Table]:
        """Return one table."""
        rows = [
            ("format", f"{self.format}, {self.precision}"),
            ("size", in_bytes(self.size)),
            ("outputs", ", ".join(self.outputs)),
        ]
        if self.agreement is not None:
            rows.append(("same first class as the model", f"{self.agreement:.1%} of {IMAGES} images of the sample"))
        if self.difference is not None:
            rows.append(("largest difference of a logit", f"{self.difference:.1e} of their range"))
        for name, accuracy in self.accuracies:
            interval = f"{accuracy.value:.1%} ({accuracy.low:.1%} to {accuracy.high:.1%})"
            rows.append((f"accuracy in {name}", interval))
        return [Table(title=str(self.out), columns=("", "value"), rows=tuple(rows), notes=self.notes)]
