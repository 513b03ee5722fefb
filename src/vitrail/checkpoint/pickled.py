"""torch's own files (`.pth`, `.bin`): pickles, and so only ever opened when somebody says so.

Tensors and plain containers only; a pickle that names anything else is refused, and there is no second attempt.
"""

import pickle
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource, from_tensors

_WRAPPERS = ("model", "state_dict", "model_state_dict", "state_dict_ema", "model_ema")


def open_pickled(path: Path, *, resident: bool = False) -> TensorSource:
    """Read the tensors of a torch file, by memory map unless they are to be `resident`."""
    try:
        loaded = _load(path, resident=resident)
    except pickle.UnpicklingError as error:
        reason = str(error).split("WeightsUnpickler error:")[-1].strip().splitlines()[0]
        raise CheckpointError(
            f"{path} is refused: it holds more than tensors and plain containers, or is not a torch file ({reason}). "
            "Nothing in it was run. Ask for a .safetensors file instead."
        ) from None
    except Exception as error:  # a damaged file makes torch's reader fail in any way; none of them is a bug of ours
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{path} is damaged or no torch file ({reason}); get the file again.") from None
    return from_tensors(_tensors(path, loaded), str(path))


def _load(path: Path, *, resident: bool) -> Any:
    """Let torch read tensors and plain containers, by memory map where its format allows it."""
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")  # of pickle versions: what they cannot hold is refused anyway
        # torch goes by the suffix, not by the content
        mapped = not resident and file.read(2) == b"PK" and path.suffix != ".safetensors"
        file.seek(0)
        return torch.load(path if mapped else file, map_location="cpu", weights_only=True, mmap=mapped)


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
    odd = [name for name, value in found.items() if not _is_plain(value)]
    if odd:
        raise CheckpointError(f"{path} holds tensors that do not have their own numbers: {', '.join(odd)}.")
    return found


def _is_plain(tensor: Tensor) -> bool:
    """Tell whether every value of a tensor is stored; a view that repeats values could claim any size."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
