"""timm: every Vision Transformer at depth 2, and one model of each module whose names are like theirs.

Each is as narrow as its heads allow (16 values for a head), where timm lets it be: with the name of the architecture,
nothing that is read depends on the width. What is told by sizes alone is tried at full size in published_tags.py.

The ways of loading one:

- folder: as timm saves it for a hub, with config.json, at its published size;
- bare: the state dict alone, with the architecture's name and the image size as answers;
- rectangle: a folder of a model that was made for a rectangle;
- resized: the folder of the first way loaded for another size, beside timm's own resizing of the same weights.

The last two are tried for the first architecture of each structure (the parts that the table of architectures has).
"""

import importlib
from collections.abc import Iterator
from pathlib import Path

import timm
import torch
from safetensors.torch import load_file
from timm.models import save_for_hf
from torch import nn
from verdicts import Verdict, images_of, judge, randomised

from vitrail.checkpoint.formats.timm_facts import table

LIBRARY = "timm"
MOST_PARAMETERS = 6e8
MODULES = (
    *("beit", "deit", "eva", "naflexvit", "vision_transformer", "vision_transformer_hybrid"),
    *("vision_transformer_relpos", "vision_transformer_sam"),
)
NEIGHBOURS = (
    *("cait", "coat", "convit", "crossvit", "davit", "deepseek_vit", "edgenext", "gemma4_vit", "hiera", "levit"),
    *("mlp_mixer", "mvitv2", "nest", "pit", "pvt_v2", "qwen3_vit", "swin_transformer", "swin_transformer_v2", "tnt"),
    *("twins", "visformer", "vitamin", "volo", "xcit"),
)
"""Modules of other transformers; the first model of each is tried, which must be refused."""
NOT_BUILT = (TypeError, AssertionError, ValueError, IndexError, KeyError, RuntimeError)


def names() -> list[str]:
    own = {name for module in MODULES for name in timm.list_models(module=module)}
    return [*sorted(own), *(timm.list_models(module=module)[0] for module in NEIGHBOURS)]


def verdicts(name: str, folder: Path) -> Iterator[Verdict]:
    small, parameters = _small(name)
    if parameters > MOST_PARAMETERS:
        yield Verdict(LIBRARY, name, "folder", "unbuilt", f"{parameters / 1e9:.1f}e9 parameters")
        return
    model = randomised(timm.create_model(name, num_classes=5, **small))
    try:
        save_for_hf(model, folder, model_args=small, safe_serialization=True)
    except RuntimeError as error:  # as of models that share weights between blocks
        yield Verdict(
            LIBRARY, name, "folder", "unbuilt", f"timm does not save it: {str(error).split(':')[0].strip()[:80]}"
        )
        return
    size = _size(model)
    images = images_of(*size, count=1 if size[0] > 256 else 2)
    outputs: list[torch.Tensor] = []

    def wanted() -> torch.Tensor:
        outputs[:] = outputs or [model(images)]
        return outputs[0]

    first = judge(folder, images, wanted)
    yield Verdict(LIBRARY, name, "folder", *first)
    bare = folder / "bare.safetensors"
    bare.hardlink_to(folder / "model.safetensors")
    yield Verdict(LIBRARY, name, "bare", *judge(bare, images, wanted, architecture=name, image_size=size))
    if first[0] == "refused" or not _first_of_its_kind(name):
        return
    other = _other_size(name, model)
    yield Verdict(LIBRARY, name, "resized", *_resized(name, folder, other, small))
    model = None
    for file in folder.iterdir():
        file.unlink()
    yield Verdict(LIBRARY, name, "rectangle", *_rectangle(name, folder, other, small))


def _first_of_its_kind(name: str) -> bool:
    """Tell whether no architecture before this one has the same parts, whatever its sizes."""
    kinds: dict[str, str] = {}
    for other, row in table().items():
        kinds.setdefault(" ".join([*row["parts"].split()[3:], str(row.get("rotary")), row["pool"]]), other)
    return name in kinds.values()


def _small(name: str) -> tuple[dict[str, int], int]:
    """Return the arguments that make a model small, as far as timm takes them, and how many parameters are left."""
    small: dict[str, int] = {}
    parameters, heads = _tried(name, small)
    for argument, value in {"depth": 2, "embed_dim": 16 * heads}.items():
        try:
            fewer, _ = _tried(name, small | {argument: value})
        except NOT_BUILT:
            continue
        if fewer < parameters:
            small[argument], parameters = value, fewer
    return small, parameters


def _tried(name: str, arguments: dict[str, int]) -> tuple[int, int]:
    """Build a model without numbers, and return how many parameters and how many heads it has."""
    with torch.device("meta"):
        model = timm.create_model(name, num_classes=5, **arguments)
    heads = [module.num_heads for module in model.modules() if isinstance(getattr(module, "num_heads", None), int)]
    return sum(one.numel() for one in model.parameters()), max(heads, default=4)


def _size(model: nn.Module) -> tuple[int, int]:
    size = tuple(model.pretrained_cfg["input_size"][1:])
    embed = getattr(model, "patch_embed", None)
    if embed is not None and not getattr(embed, "dynamic_img_pad", False):
        size = tuple(getattr(embed, "img_size", None) or size)
    return size


def _other_size(name: str, model: nn.Module) -> tuple[int, int]:
    """Return a small rectangle."""
    cell = model.patch_embed.feat_ratio() if hasattr(model.patch_embed, "feat_ratio") else 16
    cell = cell if isinstance(cell, int) else cell[0]
    cell = max(int(cell), 32 if "r26" in name or "r50" in name or "resnet" in name else cell)
    return 4 * cell, 6 * cell


def _resized(name: str, folder: Path, size: tuple[int, int], small: dict[str, int]) -> tuple[str, str]:
    """Load for another size what timm loads for it with its own filter of checkpoints."""
    try:
        model = timm.create_model(name, num_classes=5, img_size=size, **small).eval()
        module = importlib.import_module(type(model).__module__)
        state = load_file(folder / "model.safetensors")
        model.load_state_dict(module.checkpoint_filter_fn(state, model))
    except NOT_BUILT as error:
        return "unbuilt", f"timm does not: {str(error).splitlines()[0][:100]}"
    images = images_of(*size)
    return judge(folder, images, lambda: model(images), image_size=size)


def _rectangle(name: str, folder: Path, size: tuple[int, int], small: dict[str, int]) -> tuple[str, str]:
    try:
        model = randomised(timm.create_model(name, num_classes=5, img_size=size, **small))
    except NOT_BUILT as error:
        return "unbuilt", f"timm does not: {str(error).splitlines()[0][:100]}"
    config = {**model.pretrained_cfg, "input_size": [3, *size]}
    model.pretrained_cfg = config
    save_for_hf(model, folder, model_args={**small, "img_size": list(size)}, safe_serialization=True)
    images = images_of(*size)
    return judge(folder, images, lambda: model(images))
