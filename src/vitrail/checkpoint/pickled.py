"""torch's own files (`.pth`, `.bin`): pickles, and so only ever opened when somebody says so.

Tensors and plain containers only; a pickle that names anything else is refused, and there is no second attempt.
"""

import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.checkpoint.source import TensorSource, from_tensors

_WRAPPERS = ("model", "state_dict", "model_state_dict", "state_dict_ema", "model_ema")


def open_pickled(path: Path) -> TensorSource:
    """Read the tensors of a torch file."""
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=_is_zip(path))
    except pickle.UnpicklingError as error:
        reason = str(error).split("WeightsUnpickler error:")[-1].strip().splitlines()[0]
        raise CheckpointError(
            f"{path} is refused: it holds more than tensors and plain containers, or is no torch file ({reason}). "
            "Nothing in it was run. Ask for a .safetensors file instead."
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged or no torch file: {str(error).splitlines()[:1]}.") from None
    return from_tensors(_tensors(path, loaded), str(path))


def _tensors(path: Path, loaded: Any) -> dict[str, Tensor]:
    """Find the state dict, which trainers like to wrap."""
    while isinstance(loaded, dict) and not any(isinstance(value, Tensor) for value in loaded.values()):
        inner = next((loaded[name] for name in _WRAPPERS if isinstance(loaded.get(name), dict)), None)
        if inner is None:
            break
        loaded = inner
    if not isinstance(loaded, dict) or not any(isinstance(value, Tensor) for value in loaded.values()):
        raise CheckpointError(f"{path} holds a {type(loaded).__name__} without tensors by name, so no weights.")
    found = {str(name).removeprefix("module."): value for name, value in loaded.items() if isinstance(value, Tensor)}
    return {name: value for name, value in found.items() if value.layout == torch.strided and not value.is_quantized}


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"PK"
