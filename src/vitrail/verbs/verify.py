"""Check a file of weights."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitrail.base.errors import CheckpointError, InputError
from vitrail.base.files import path_of
from vitrail.base.table import Table, Tabular
from vitrail.checkpoint.assembly import is_finite
from vitrail.model.patches import Size
from vitrail.published.find import find_published
from vitrail.published.record import changed_files
from vitrail.verbs.weights import open_weights


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification(Tabular):
    """The result of a file's check."""

    file: str
    """The file or folder."""
    format: str | None = None
    """The layout of the file; None where it could not be read."""
    tensors: int = 0
    """How many tensors were read to their end."""
    digest: str | None = None
    """SHA-256 that the file carries and that matches."""
    problems: tuple[str, ...] = ()
    """The problems, a sentence each."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "file": self.file,
            "good": self.good,
            "format": self.format,
            "tensors": self.tensors,
            "digest": self.digest,
            "problems": list(self.problems),
        }

    def sentences(self) -> tuple[str, ...]:
        """Write the problems, or that there are none."""
        if self.problems:
            return tuple(f"{self.file}: {problem}" for problem in self.problems)
        digest = (
            f"SHA-256 {self.digest} matches" if self.digest else f"{self.format} files carry no digest; the layout fits"
        )
        return (f"{self.file}: good. {self.tensors} tensors, all finite; {digest}.",)

    def tables(self) -> list[Table]:
        """Return the sentences."""
        return [Table(notes=self.sentences())]


def verify(
    path: str | Path,
    *,
    pickle: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
) -> Verification:
    """Check that a file of weights is whole, fits its own description, and has no NaN.

    Our own files carry a SHA-256, which shows a single changed bit; others are read to the end and matched against
    their layout; a published model is held to the digests of its download. A file that is not good is a result, and a
    path without a file an error. The keywords are those of `vitrail.show`.

    >>> vitrail.verify("model.safetensors").good
    True
    """
    place = find_published(path)
    if place is None and not path_of(path, "path").exists():
        raise InputError(f"there is no file or folder {path}.")
    if place is not None and place.record is not None and (changed := changed_files(place.record)):
        listed = ", ".join(changed)
        problem = f"{listed} changed after the download: the SHA-256 is not the one that was recorded; pull it again."
        return Verification(file=str(path), problems=(problem,))
    try:
        contents = open_weights(
            path, pickle=pickle, image_size=image_size, num_heads=num_heads, architecture=architecture
        )
    except CheckpointError as error:
        return Verification(file=str(path), problems=(str(error),))
    whole = Verification(file=str(path), format=contents.format, tensors=len(contents.tensors), digest=contents.digest)
    try:
        bad = [name for name in contents.tensors if not is_finite(contents.tensors[name])]
    except CheckpointError as error:
        return replace(whole, problems=(str(error),))
    return replace(whole, problems=(f"NaN or infinite weights in {', '.join(bad)}.",)) if bad else whole
