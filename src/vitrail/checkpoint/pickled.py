"""torch's own files (`.pth`, `.bin`): pickles, and so only ever opened when somebody says so.

Tensors and plain containers only; a pickle that names anything else is refused, and there is no second attempt. What
torch says of such a file is never repeated: it ends with how to load it all the same.
"""

import io
import pickle
import pickletools
import warnings
import zipfile
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.limits import TEXT_BYTES
from vitrail.base.reading import open_regular
from vitrail.base.tensors import TensorSource, from_tensors
from vitrail.checkpoint.archive import check_packed

_WRAPPERS = ("model", "state_dict", "model_state_dict", "state_dict_ema", "model_ema")
_USUAL = ("torch", "collections", "numpy", "_codecs")
"""Where what torch itself writes comes from."""
_PICKLES = 4
"""A file of torch's older format has a number, a version and facts about the machine before the tensors."""


def open_pickled(path: Path, *, resident: bool = False) -> TensorSource:
    """Read the tensors of a torch file, by memory map unless they are to be `resident`."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            check_packed(path, archive)
    try:
        loaded = _load(path, resident=resident)
    except pickle.UnpicklingError:
        raise CheckpointError(
            f"{path} is refused: {_more_than_tensors(path)}. Nothing in it was run. "
            "Ask for a .safetensors file instead."
        ) from None
    except Exception as error:  # a damaged file makes torch's reader fail in any way; none of them is a bug of ours
        raise CheckpointError(
            f"{path} is damaged or not a torch file ({type(error).__name__}); get the file again."
        ) from None
    return from_tensors(_tensors(path, loaded), str(path))


def _load(path: Path, *, resident: bool) -> Any:
    """Let torch read tensors and plain containers, by memory map where its format allows it."""
    with warnings.catch_warnings(), open_regular(path, CheckpointError) as file:
        warnings.simplefilter("ignore")  # of pickle versions: what they cannot hold is refused anyway
        # torch goes by the suffix, not by the content
        mapped = not resident and file.read(2) == b"PK" and path.suffix != ".safetensors"
        file.seek(0)
        return torch.load(path if mapped else file, map_location="cpu", weights_only=True, mmap=mapped)


def _more_than_tensors(path: Path) -> str:
    """Say what a pickle names that is not a tensor or a plain container, by reading its list of operations."""
    names: dict[str, None] = {}
    with suppress(Exception):  # it may break off anywhere; what was read before that is enough
        strings: list[str] = []
        program = io.BytesIO(_program(path))
        for operation, argument, _ in chain.from_iterable(pickletools.genops(program) for _ in range(_PICKLES)):
            if operation.name in ("GLOBAL", "INST"):
                names[str(argument).replace(" ", ".")] = None
            elif operation.name == "STACK_GLOBAL":
                names[".".join(strings[-2:])] = None
            elif isinstance(argument, str):
                strings = [*strings[-1:], argument]
    strange = [name[:80] for name in names if name.partition(".")[0] not in _USUAL]
    if not strange:
        return "it holds more than tensors and plain containers, or is not a torch file"
    more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
    return f"it names {', '.join(strange[:3])}{more}, but only tensors and plain containers are read"


def _program(path: Path) -> bytes:
    """Return the pickle inside a torch file."""
    if not zipfile.is_zipfile(path):
        with open_regular(path, CheckpointError) as file:
            return file.read(TEXT_BYTES.value)
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        with archive.open(name) as program:
            return program.read(TEXT_BYTES.value)


def _tensors(path: Path, loaded: Any) -> dict[str, Tensor]:
    """Find the state dict, which trainers like to wrap."""
    while isinstance(loaded, dict) and not any(isinstance(value, Tensor) for value in loaded.values()):
        inner = next((loaded[name] for name in _WRAPPERS if isinstance(loaded.get(name), dict)), None)
        if inner is None:
            break
        loaded = inner
    if not isinstance(loaded, dict) or not any(isinstance(value, Tensor) for value in loaded.values()):
        raise CheckpointError(f"{path} holds a {type(loaded).__name__} without tensors by name, so no weights.")
    tensors = {str(name).removeprefix("module."): value for name, value in loaded.items() if isinstance(value, Tensor)}
    odd = [name for name, value in tensors.items() if not _is_plain(value)]
    if odd:
        raise CheckpointError(f"{path} holds tensors that do not have their own numbers: {', '.join(odd[:5])}.")
    return tensors


def _is_plain(tensor: Tensor) -> bool:
    """Tell whether every value of a tensor is stored; a view that repeats values could claim any size."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
