"""How the weights of a Vision Transformer move to another task: another head, another size of images or patches."""

from collections.abc import Callable, Iterable
from functools import partial

from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.model.config import ViTConfig
from vitrail.model.family import Move
from vitrail.model.patches import resize_patch_kernel, size_text
from vitrail.model.positions import resize_for_grid


def move_vit(new: ViTConfig, old: ViTConfig, names: Iterable[str]) -> Move:
    """Resize the patch kernel for another patch size and positions for another grid; leave layers behind."""
    resized: dict[str, Callable[[Tensor], Tensor]] = {}
    notes: list[str] = []
    if new.patch_size != old.patch_size:
        resized["embedding.projection.weight"] = partial(resize_patch_kernel, old=old.patch_size, new=new.patch_size)
        notes.append(f"the patch kernel was resized from {size_text(old.patch_size)} to {size_text(new.patch_size)}.")
    if new.grid != old.grid and not new.mixer.any_grid:
        raise ConfigError(
            f"the mixer {new.mixer.kind!r} has a weight for each patch of its grid of {size_text(old.grid)}, so that "
            f"it cannot move to one of {size_text(new.grid)}; keep the size of images and patches."
        )
    if new.grid != old.grid:
        tables = {name: resize_for_grid(name, old.grid, new.grid, way=new.position_resize) for name in names}
        resized |= {name: resize for name, resize in tables.items() if resize is not None}
        if any(tables.values()) or new.positions == "sincos-2d":
            notes.append(f"positions were resized from a grid of {size_text(old.grid)} to {size_text(new.grid)}.")
    dropped = []
    for name, layer in (("representation_size", "representation"), ("projection_size", "projection")):
        width = getattr(old, name)
        if width is not None and getattr(new, name) is None:
            dropped.append(f"head.{layer}.")
            notes.append(f"the {layer} layer of {width} units was removed.")
    if new.pooled_width != old.pooled_width and new.num_classes == old.num_classes > 0:
        raise ConfigError(
            f"pool={new.pool!r} gives the head {new.pooled_width} numbers, but the head of the file sees "
            f"{old.pooled_width} (pool={old.pool!r}); give another num_classes, or 0, which takes that head away."
        )
    return Move(
        resized=resized,
        dropped=tuple(dropped),
        new_head=bool(dropped) or new.num_classes != old.num_classes,
        notes=tuple(notes),
    )
