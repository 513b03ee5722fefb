"""Record what other libraries compute, for the tests beside this file.

Run it in an environment that has timm, torchvision and transformers (see benchmarks/):

    python tests/golden/record_peers.py

It writes tests/golden/peers/*.npz anew; the same library versions give the same files.
"""

import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import math
from functools import partial
from pathlib import Path

import numpy as np
import timm
import torch
import torchvision
import transformers
from timm.layers import GroupNormAct, StdConv2d, resample_abs_pos_embed
from timm.models.resnetv2 import ResNetV2
from torchvision.models.vision_transformer import interpolate_embeddings
from transformers.models.vit.modeling_vit import ViTConfig, ViTEmbeddings

FOLDER = Path(__file__).parent / "peers"
GRIDS = [(7, 7), (24, 24), (10, 18)]


@torch.no_grad()
def resnet() -> dict[str, np.ndarray]:
    """A BiT ResNet of tiny width: weights, images of even and odd sizes, the output of every stage, logits."""
    torch.manual_seed(0)
    model = ResNetV2(
        layers=[2, 2, 1],
        channels=(32, 64, 128),
        stem_chs=8,
        num_classes=5,
        stem_type="fixed",
        norm_layer=partial(GroupNormAct, num_groups=4),
        conv_layer=partial(StdConv2d, eps=1e-8),
    ).eval()
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.2)
    values = {f"weight:{name}": value.clone() for name, value in model.state_dict().items()}
    model.double()  # so that only our own rounding is left to compare
    for height, width in [(48, 32), (33, 41)]:
        size = f"{height}x{width}"
        values[f"images:{size}"] = features = torch.randn(1, 3, height, width).double()
        values[f"logits:{size}"] = model(features)
        values[f"root:{size}"] = features = model.stem(features)
        for number, stage in enumerate(model.stages):
            values[f"stage{number}:{size}"] = features = stage(features)
        values[f"representation:{size}"] = model.norm(features).mean(dim=(2, 3))
    return {name: value.float().numpy() for name, value in values.items()}


@torch.no_grad()
def positions() -> dict[str, np.ndarray]:
    """A table of 14x14 positions and a class entry, moved to other grids by each library's own function."""
    torch.manual_seed(0)
    table = torch.randn(1, 197, 4)
    values = {"table": table}
    for grid in GRIDS:
        size = "x".join(map(str, grid))
        values[f"timm:{size}"] = resample_abs_pos_embed(table, list(grid))
        values[f"timm-npz:{size}"] = resample_abs_pos_embed(
            table, list(grid), interpolation="bilinear", antialias=False
        )
        embeddings = ViTEmbeddings(ViTConfig(hidden_size=4, image_size=224, patch_size=16))
        embeddings.position_embeddings.copy_(table)
        tokens = torch.zeros(1, 1 + math.prod(grid), 4)
        values[f"huggingface:{size}"] = embeddings.interpolate_pos_encoding(tokens, 16 * grid[0], 16 * grid[1])
        if grid[0] == grid[1]:  # torchvision knows squares only
            state = interpolate_embeddings(16 * grid[0], 16, {"encoder.pos_embedding": table})
            values[f"torchvision:{size}"] = state["encoder.pos_embedding"]
    return {name: value.numpy()[0] for name, value in values.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    versions = (
        f"timm {timm.__version__}, torchvision {torchvision.__version__}, transformers {transformers.__version__}"
    )
    for record in (resnet, positions):
        path = FOLDER / f"{record.__name__}.npz"
        np.savez_compressed(path, recorded_with=np.array(versions), **record())
        print(path, f"{path.stat().st_size / 1024:.0f} KiB", versions)
