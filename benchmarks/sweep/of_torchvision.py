"""torchvision: its five Vision Transformers as state dicts, and what each of its published weights does to images."""

from collections.abc import Iterator
from pathlib import Path

import torch
import torchvision
from verdicts import Verdict, images_of, judge, randomised

from vitrail.checkpoint.formats.torchvision_pixels import tell_pixels
from vitrail.model.config import ViTConfig

LIBRARY = "torchvision"
NAMES = ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14")
SIZES = {"b": (12, 768, 3072), "l": (16, 1024, 4096), "h": (16, 1280, 5120)}


def names() -> list[str]:
    return list(NAMES)


def verdicts(name: str, folder: Path) -> Iterator[Verdict]:
    heads, dim, mlp_dim = SIZES[name[4]]
    patch = int(name[-2:])
    sizes = {"patch_size": patch, "num_layers": 2, "num_heads": heads, "hidden_dim": dim, "mlp_dim": mlp_dim}
    for side, representation in ((224, None), (3 * patch, 24)):
        model = randomised(
            torchvision.models.VisionTransformer(
                **sizes, image_size=side, num_classes=5, representation_size=representation
            )
        )
        path = folder / "model.pth"
        torch.save(model.state_dict(), path)
        images = images_of(side, side)
        verdict = judge(path, images, lambda model=model, images=images: model(images), pickle=True, num_heads=heads)
        yield Verdict(LIBRARY, name, "state dict" if side == 224 else "another size", *verdict)
    for weights in torchvision.models.get_model_weights(name):
        yield Verdict(LIBRARY, name, f"pixels of {weights.name}", *pixels(name, weights, heads, dim, patch))


def pixels(name: str, weights: torchvision.models.WeightsEnum, heads: int, dim: int, patch: int) -> tuple[str, str]:
    """Compare what is known by the name of published weights with their transforms."""
    theirs = weights.transforms()
    side = theirs.crop_size[0]
    config = ViTConfig(
        dim=dim, depth=1, num_heads=heads, mlp_dim=dim, patch_size=(patch, patch), image_size=(side, side)
    )
    ours, doubt = tell_pixels(config, {"architecture": f"{name}.{weights.name}"}, name)
    if ours is None:
        return "wrong", str(doubt)
    given = (side / ours.crop_fraction, ours.interpolation, ours.mean, ours.std)
    wanted = (theirs.resize_size[0], theirs.interpolation.value, tuple(theirs.mean), tuple(theirs.std))
    same = abs(given[0] - wanted[0]) < 1e-6 and given[1:] == wanted[1:]
    return ("exact", "") if same else ("wrong", f"{given} and not {wanted}")
