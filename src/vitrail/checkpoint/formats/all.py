"""Every format, in the order in which a file is held against them."""

from pathlib import Path

from vitrail.base.errors import CheckpointError, did_you_mean
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats import bit, google, huggingface_write, openclip, perception, timm, torchvision
from vitrail.checkpoint.formats.format import Format
from vitrail.checkpoint.formats.names import NAMES

FORMATS: tuple[Format, ...] = (
    bit.GOOGLE,
    google.RELEASE,
    google.LINEN,
    google.BIG_VISION,
    timm.FORMAT,
    bit.TIMM,
    *huggingface_write.FORMATS,
    torchvision.FORMAT,
    openclip.FORMAT,
    perception.FORMAT,
)


def write_any(contents: Contents, path: Path, name: str, *, lossy: bool = False) -> Contents:
    """Write a file of somebody else's format, and return what was written, with notes."""
    forms = [form for form in FORMATS if form.name == name and form.write is not None]
    if not forms:
        raise CheckpointError(
            f"there is no format {name!r}; choose one of {', '.join(NAMES)}.{did_you_mean(name, NAMES)}"
        )
    fitting = [form for form in forms if contents.config.kind in form.abilities.kinds] or forms
    written = min(fitting, key=lambda form: form.lacks(contents)).save(contents, path, lossy=lossy)
    return written.noting(*_left_behind(contents, path))


def _left_behind(contents: Contents, path: Path) -> list[str]:
    """Name what a format has no place for."""
    if path.suffix != ".npz":
        return []
    parts = {
        "labels": contents.labels,
        "preprocessing": contents.preprocessing,
        "provenance": contents.provenance.keys() - {"versions"},
    }
    lost = ", ".join(name for name, value in parts.items() if value)
    return [f"an .npz has no place for {lost}; keep the {contents.format} file too."] if lost else []
