"""Which format a file is of: by what it holds, never by its name."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitrail.base.container import Container, open_container
from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.base.outputs import read_head
from vitrail.base.reading import open_regular
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.archive import open_archive
from vitrail.checkpoint.contents import Contents, needed_shapes
from vitrail.checkpoint.formats.all import FORMATS
from vitrail.checkpoint.formats.folder import FOLDER_FILES, read_json
from vitrail.checkpoint.formats.format import Weights
from vitrail.checkpoint.formats.huggingface_types import ALIASES, TYPES, refusal
from vitrail.checkpoint.formats.names import FormatName
from vitrail.checkpoint.formats.released import with_plain_names
from vitrail.checkpoint.formats.shards import INDEXES, open_shards
from vitrail.checkpoint.formats.strangers import refuse_stranger
from vitrail.checkpoint.formats.unknown import why_unknown
from vitrail.checkpoint.infer import Hints
from vitrail.checkpoint.pickled import open_pickled
from vitrail.checkpoint.store import check_sane, is_store, parse, read_store
from vitrail.checkpoint.wrappers import Training
from vitrail.data.preprocessing import preset
from vitrail.published.catalogue import nearest

_WEIGHTS = ("model.safetensors", "pytorch_model.bin", "open_clip_model.safetensors", "open_clip_pytorch_model.bin")
_TIMM_IN_TRANSFORMERS = "timm_wrapper"
"""The type of transformers that holds a model of timm, by timm's names and settings."""
_HUB = re.compile(r"[\w-]+/[\w.-]+(@[\w.-]+)?")
"""Names as a hub of models has them: owner/name."""


def read_any(path: Path, hints: Hints, *, pickle: bool = False, resident: bool = False) -> Contents:
    """Read a file or folder of any supported format; `resident` keeps its tensors in memory, not in the file."""
    try:
        if not path.exists():
            raise CheckpointError(_missing(path))
        if path.is_dir():
            return _read_folder(path, hints, pickle=pickle, resident=resident)
        return _read_file(path, hints, pickle=pickle, resident=resident)
    except ConfigError as error:
        raise CheckpointError(f"{path} does not describe a model that can be built: {error}") from None
    except MemoryError:
        raise CheckpointError(f"{path} needs more memory than there is.") from None
    except (OSError, ValueError) as error:  # the second: a name with a zero byte
        raise CheckpointError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _missing(path: Path) -> str:
    """Write that there is no such file, and what a name of a hub would need."""
    hub = f"; if {path} is a repository of Hugging Face, give hf:{path}" if _HUB.fullmatch(str(path)) else ""
    return f"there is no file or folder {path}{hub}.{nearest(str(path))}"


def holds_format(path: Path, name: FormatName) -> bool:
    """Return whether a file or folder is what writing a model as `name` leaves behind.

    A model of our own counts if it was converted: one that was trained has no other copy.
    """
    if path.is_dir():
        return {entry.name for entry in path.iterdir()} <= FOLDER_FILES and holds_format(path / _WEIGHTS[0], name)
    if read_head(path)[:2] == b"PK":
        names = set(open_archive(path))
    else:
        container = open_container(path)
        if is_store(container.metadata):
            provenance = json.loads(container.metadata.get("vitrail.provenance", "{}"))
            return name == "vitrail" and "source" in provenance
        names = set(container.places)
    return any(form.name == name and form.recognises(names) for form in FORMATS)


def _read_folder(path: Path, hints: Hints, *, pickle: bool, resident: bool) -> Contents:
    weights = next((path / name for name in _WEIGHTS if (path / name).is_file()), None)
    index = next((path / name for name in INDEXES if (path / name).is_file()), None)
    if weights is not None:
        return _read_file(weights, hints, pickle=pickle, resident=resident)
    if index is None:
        raise CheckpointError(f"the folder {path} has no {' or '.join(_WEIGHTS[:2])}; give the file itself.")
    source = open_shards(index, lambda shard: _open_shard(shard, pickle=pickle, resident=resident))
    return _recognise(source, path / _WEIGHTS[0], hints)


def _open_shard(path: Path, *, pickle: bool, resident: bool) -> TensorSource:
    """Open one of several files of weights."""
    with open_regular(path, CheckpointError) as file:
        start = file.read(512)
    if _is_pickle(path, start):
        _check_allowed(path, pickle=pickle)
        return open_pickled(path, resident=resident).source
    refuse_stranger(path, start)
    return open_container(path, resident=resident).source


def _check_allowed(path: Path, *, pickle: bool) -> None:
    if not pickle:
        raise CheckpointError(
            f"{path} is a torch file, which is a pickle and can hold programs; import it once, on purpose, with "
            "`vitrail convert`, or allow it with `pickle=True`; either way only tensors are read."
        )


def _read_file(path: Path, hints: Hints, *, pickle: bool, resident: bool) -> Contents:
    with open_regular(path, CheckpointError) as file:
        start = file.read(512)
    if _is_pickle(path, start):
        _check_allowed(path, pickle=pickle)
        return _read_training(open_pickled(path, resident=resident), path, hints)
    if start[:2] == b"PK":
        return _recognise(open_archive(path), path, hints)
    refuse_stranger(path, start)
    container = open_container(path, resident=resident)
    if is_store(container.metadata):
        return read_store(container)
    contents = _recognise(container.source, path, {**hints, **_origin_hints(container)})
    return _restore_origin(contents, container)


def _is_pickle(path: Path, start: bytes) -> bool:
    """Recognise torch's zip, its older format and bare pickles."""
    if start[:2] == b"PK":
        import zipfile

        try:
            return any(name.endswith("data.pkl") for name in zipfile.ZipFile(path).namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):  # the last: an unknown compression
            return False
    return start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and start[8:9] != b"{"


def _read_training(training: Training, path: Path, hints: Hints) -> Contents:
    """Read the weights of a torch file, with what the program that trained them states."""
    contents = _recognise(training.source, path, {**training.hints, **hints}, training.settings).noting(*training.notes)
    if training.preset is None or "pretrained_cfg" in training.settings or "architecture" in hints:
        return contents
    pixels = preset(training.preset, image_size=contents.config.image_size, channels=contents.config.channels)
    return contents.noting(preprocessing=pixels, doubt=None)


def _recognise(source: TensorSource, path: Path, hints: Hints, stated: Mapping[str, Any] | None = None) -> Contents:
    """Find the layout by the names of the tensors."""
    pixels = _beside(path, "preprocessor_config.json")
    settings = _beside(path, "open_clip_config.json" if path.name.startswith("open_clip") else "config.json")
    settings = settings or dict(stated or {})
    kind = settings.get("model_type")
    if isinstance(kind, str) and kind not in {*TYPES, *ALIASES, _TIMM_IN_TRANSFORMERS}:
        raise CheckpointError(refusal(kind, source.origin))  # names may be like those of another library
    released = with_plain_names(source)
    source, names = released.source, set(released.source)
    hints = {**released.hints, **hints}
    for form in FORMATS:
        if form.read is not None and form.recognises(names):
            weights = Weights(source=source, hints=hints, settings=settings, pixels=pixels)
            contents = form.read(weights)
            return contents.noting(*released.notes)
    raise CheckpointError(why_unknown(names, source.origin))


def _beside(path: Path, name: str) -> dict[str, Any]:
    """Read a JSON file in the same folder, for weights that have the name such folders give them."""
    return read_json(path.parent / name) if path.name in _WEIGHTS and (path.parent / name).is_file() else {}


def _origin_hints(container: Container) -> dict[str, Any]:
    """Return what the tensors of a file that Vitrail wrote for another library do not show."""
    try:
        config = json.loads(container.metadata.get("vitrail.origin", "{}")).get("config") or {}
        settings = config | (json.loads(container.metadata.get("vitrail.origin", "{}")).get("numerics") or {})
        hints = {name: settings[name] for name in ("num_heads", "pool", "gelu", "norm_eps") if name in settings}
        return hints | ({"image_size": tuple(map(int, config["image_size"]))} if "image_size" in config else {})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}  # `_restore_origin` says so


def _restore_origin(contents: Contents, container: Container) -> Contents:
    """Take back what Vitrail wrote into the header of somebody else's format, where it still fits the tensors."""
    text = container.metadata.get("vitrail.origin")
    if text is None:
        return contents
    try:
        parts = {name: json.dumps(value) for name, value in json.loads(text).items()}
        original = parse(parts, container, contents.format)
    except (ValueError, AttributeError, RecursionError, ConfigError, CheckpointError) as error:
        return contents.noting(f"what Vitrail noted in the header cannot be read and was left aside ({error}).")
    check_sane(original.config, len(contents.tensors), str(container.path))
    if needed_shapes(original.config) != contents.tensors.shapes:
        return contents.noting("what Vitrail noted in the header is of another model and was left aside.")
    return contents.noting(
        config=original.config,
        labels=original.labels,
        preprocessing=original.preprocessing,
        doubt=None,
        provenance=original.provenance,
    )
