"""The engines of this machine beside each other, as a table."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.runtime.choice import EngineName, Precision


@dataclass(frozen=True, kw_only=True)
class EngineSpeed:
    """One engine with one batch."""

    engine: EngineName
    precision: Precision
    merge_tokens: int = 0
    """How many tokens each block merges into others."""
    batch: int
    images_per_second: float
    """By the median pass."""
    median: float
    """Seconds of the median pass."""
    slow: float
    """Seconds within which 99% of the passes end."""
    memory: int
    """The most bytes of memory that the process had so far, with Python and the runtime."""
    start_up: float
    """Seconds from the start of the process to the first answer."""
    agreement: float
    """The share of images with the first class of the reference: torch in float32, or an exported file's own engine."""
    difference: float
    """The largest difference of a logit from the reference, as a share of the range of logits."""

    @property
    def title(self) -> str:
        """The engine, its numbers, and what it leaves out."""
        merged = f", {self.merge_tokens} tokens merged" if self.merge_tokens else ""
        return f"{self.engine} {self.precision}{merged}"


@dataclass(frozen=True, kw_only=True, repr=False)
class EngineTable(Tabular):
    """Every engine on this machine, measured with one model."""

    model: str
    """The file."""
    threads: int
    """Threads for computing."""
    speeds: tuple[EngineSpeed, ...]
    """One for each engine, precision and batch."""
    peak: float
    """Multiply-accumulates in a second of the fastest product of matrices in float32."""
    limit: float
    """Images in a second at that speed, if the model were nothing but such products; NaN where its cost is unknown."""
    reference: str
    """The engine with which the others are compared."""
    images: str
    """The images on which they are compared: how many, and where they come from."""
    failed: tuple[str, ...] = ()
    """Engines that were not measured, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        rows = [{name: _finite(value) for name, value in asdict(speed).items()} for speed in self.speeds]
        machine = {
            "reference": self.reference,
            "images": self.images,
            "peak": self.peak,
            "limit": _finite(self.limit),
            "failed": list(self.failed),
        }
        return {"model": self.model, "threads": self.threads, "speeds": rows, **machine}

    def tables(self) -> list[Table]:
        """Return one table."""
        columns = ("engine", "batch", "images/s", "median", "99%", "memory", "start-up", "agreement", "difference")
        rows = tuple(
            (
                speed.title,
                str(speed.batch),
                f"{speed.images_per_second:.1f}",
                f"{1000 * speed.median:.1f} ms",
                f"{1000 * speed.slow:.1f} ms",
                in_bytes(speed.memory),
                f"{speed.start_up:.1f} s",
                "-" if math.isnan(speed.agreement) else f"{speed.agreement:.1%}",
                f"{speed.difference:.1e}",
            )
            for speed in self.speeds
        )
        limit = "" if math.isnan(self.limit) else f", {self.limit:.1f} images/s of this model"
        notes = (
            f"The limit in float32 is {2 * self.peak / 1e9:.0f} GFLOP/s{limit}: the fastest product of matrices here.",
            f"Agreement and difference are to {self.reference}, on {self.images}.",
            *self.failed,
        )
        title = f"{self.model}, {self.threads} threads"
        return [Table(title=title, columns=columns, rows=rows, notes=notes)]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
