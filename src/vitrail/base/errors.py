"""Everything that Vitrail refuses, as one tree.

    VitrailError            a sentence for a person: what was given, what was needed, what to do
    |-- ConfigError         settings that no model or run can have
    |   `-- GridError       patches that do not divide the image
    |-- InputError          images, tensors or files that do not fit the model
    |   |-- CheckpointError a file of weights that is damaged, unknown, or does not fit
    |   `-- ImageError      one image that is broken, too large, or of a format that is not read
    |-- WriteError          a file that could not be written: a full disk, a folder without permission
    `-- WorkerError         a process that read images and was ended from outside

The command line prints the sentence and exits with the error's code: 2 for what was given, 1 for work that failed.
`--debug` shows the traceback.
"""

import difflib
from collections.abc import Iterable


class VitrailError(Exception):
    """Anything that Vitrail refuses, told in one sentence."""

    exit_code = 2


class ConfigError(VitrailError):
    """Settings that contradict each other or the paper's equations."""


class GridError(ConfigError):
    """Patches that do not divide the image, or the feature map of a hybrid."""


class InputError(VitrailError):
    """Images, tensors or files that do not fit what was asked of them."""


class CheckpointError(InputError):
    """A file of weights that is damaged, of an unknown layout, or does not fit what was asked of it."""


class ImageError(InputError):
    """One image that is truncated, broken, too large, or of a format that is not read."""


class WriteError(VitrailError):
    """A file that could not be written, after which everything is as it was."""

    exit_code = 1


class WorkerError(VitrailError):
    """A process that read images, and was ended from outside."""

    exit_code = 1


def did_you_mean(given: str, known: Iterable[str], *, most: int = 3) -> str:
    """End a sentence with the known names nearest to `given`, or with nothing when none is near."""
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(given.lower(), lowered, n=most, cutoff=0.5)
    return f" Did you mean {' or '.join(lowered[name] for name in near)}?" if near else ""
