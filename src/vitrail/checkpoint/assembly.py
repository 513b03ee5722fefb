"""From the contents of a file to a model in memory."""

import math
import warnings

import torch
from torch import Tensor

from vitrail.base.memory import check_memory
from vitrail.checkpoint.contents import Contents
from vitrail.model.build import build
from vitrail.model.contract import Model
from vitrail.model.info import ModelInfo
from vitrail.model.init import fill_fixed_tables


def assemble(contents: Contents, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None) -> Model:
    """Build the model without memory of its own and give it the tensors as they lie in the file.

    Without a `dtype`, weights of another library's half precision become float32, in which they lose nothing.
    """
    model = build(contents.config, device="meta")
    check_memory(_bytes_of(model, contents), f"the model of {contents.tensors.origin}")
    state = {name: contents.tensors[name] for name in contents.tensors}
    state = _same_dtype(state, dtype, ours=contents.format == "vitrail")
    _warn_of_bad_numbers(state, contents.tensors.origin)
    model.load_state_dict(state, assign=True)
    del state
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            module.register_buffer(name, torch.empty_like(buffer, device="cpu"), persistent=False)
    fill_fixed_tables(model)
    model.info = ModelInfo(
        labels=contents.labels,
        preprocessing=contents.preprocessing,
        provenance=contents.provenance,
        digest=contents.digest,
        notes=contents.notes,
        doubt=contents.doubt,
    )
    return model.to(device).eval()


def _bytes_of(model: Model, contents: Contents) -> int:
    """Count the bytes of a model's weights and fixed tables, in the type that they are stored in."""
    sizes = [dtype.itemsize for _, dtype in contents.tensors.specs.values() if dtype is not None]
    values = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    return values * max(sizes, default=1)


def _same_dtype(state: dict[str, Tensor], dtype: torch.dtype | None, *, ours: bool) -> dict[str, Tensor]:
    """Give all tensors one type, in which a model computes: the requested one, or one that loses nothing."""
    kinds = {tensor.dtype for tensor in state.values()}
    if dtype is None:
        dtype = next(iter(kinds)) if len(kinds) == 1 and ours else torch.float32
        dtype = torch.float64 if torch.float64 in kinds else dtype
    return {name: tensor.to(dtype) for name, tensor in state.items()}


def _warn_of_bad_numbers(state: dict[str, Tensor], origin: str) -> None:
    """Name the tensors that hold NaN or infinity; a sum finds them in one pass."""
    bad = [name for name, tensor in state.items() if not is_finite(tensor)]
    if bad:
        warnings.warn(f"{origin} has NaN or infinite weights in {', '.join(bad)}.", stacklevel=4)


def is_finite(tensor: Tensor) -> bool:
    """Return whether a tensor has neither NaN nor infinity."""
    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return math.isfinite(tensor.sum(dtype=wide).item()) or bool(tensor.isfinite().all())
