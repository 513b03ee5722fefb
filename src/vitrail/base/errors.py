"""Everything that Vitrail refuses, as one tree.

    VitrailError            one sentence for the user: what was given, what was needed, what to do
    |-- ConfigError         settings that no model or run can have
    |   `-- GridError       patches that do not divide the image
    |-- InputError          images, tensors or files that do not fit the model
    |   |-- CheckpointError a file of weights that is damaged, unknown, or does not fit
    |   `-- ImageError      one image that is broken, too large, or of a format that is not read
    |       |-- ImageFormatError  bytes that are not an image of a format that is read
    |       `-- ImageSizeError    more pixels than are decoded
    |-- WriteError          a file that could not be written: a full disk, a folder without permission
    |-- NetworkError        a download that failed: no network, a server that refuses, other bytes than were published
    |-- WorkerError         a process that read images and was ended from outside
    `-- RankError           another rank that has ended, without which this one cannot work

The command line prints the sentence and exits with its code: 2 for wrong usage or input, 1 for work that failed.
`--debug` shows the traceback.
"""

import difflib
from collections.abc import Iterable

from vitrail.base.printable import shortened


class VitrailError(Exception):
    """Anything that Vitrail refuses, in one sentence; numbers and words without an end are shortened."""

    exit_code = 2

    def __init__(self, sentence: str = "") -> None:
        """Keep the sentence."""
        super().__init__(shortened(sentence))


class ConfigError(VitrailError):
    """Settings that contradict each other or the paper's equations."""


class GridError(ConfigError):
    """Patches that do not divide the image, or the feature map of a hybrid."""


class InputError(VitrailError):
    """Images, tensors or files that do not fit the task."""


class CheckpointError(InputError):
    """A file of weights that is damaged, of an unknown layout, or does not fit the model."""


class ImageError(InputError):
    """One image that is truncated, broken, too large, or of a format that is not read."""


class ImageFormatError(ImageError):
    """Bytes that do not begin as an image of a format that is read."""


class ImageSizeError(ImageError):
    """An image of more pixels, or of more work, than is allowed."""


class WriteError(VitrailError):
    """A file that could not be written; the file that was there before is unchanged."""

    exit_code = 1


class NetworkError(VitrailError):
    """A download that failed; what was received stays where the same command resumes."""

    exit_code = 1


class WorkerError(VitrailError):
    """A process that read images, and was ended from outside."""

    exit_code = 1


class RankError(VitrailError):
    """Another rank that has ended, without which this one cannot work."""

    exit_code = 1


def did_you_mean(word: str, names: Iterable[str], *, most: int = 3) -> str:
    """Return ` Did you mean ...?` with the names nearest to `word`, or nothing when none is near."""
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), lowered, n=most, cutoff=0.5)
    return f" Did you mean {' or '.join(lowered[name] for name in near)}?" if near else ""
