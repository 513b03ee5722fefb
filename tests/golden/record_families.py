"""Record small timm models of the families that Vitrail reads: config.json, weights, and outputs at several sizes.

Weights and images are rounded to float16 and stored so, which loses nothing that the model has. Positions of another
size are those of timm's own filter of checkpoints. Run it in the environment that benchmarks/peers.sh makes:

    python tests/golden/record_families.py
"""

import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import importlib
import json
import tempfile
from pathlib import Path

import numpy as np
import timm
import torch
from timm.models import save_for_hf

FOLDER = Path(__file__).parent / "families"
SMALL = {"embed_dim": 24, "depth": 2, "num_heads": 3, "patch_size": 4, "img_size": 16, "mlp_ratio": 2}
# Name of the file -> architecture and further arguments.
FAMILIES = {
    "deit_distilled": ("deit_tiny_distilled_patch16_224", SMALL),
    "deit3": ("deit3_small_patch16_224", SMALL),
    "dinov2_registers": ("vit_small_patch14_reg4_dinov2", SMALL),
    "dinov2_giant": ("vit_giant_patch14_dinov2", SMALL),
    "clip": ("vit_base_patch16_clip_quickgelu_224", SMALL),
    "siglip": ("vit_base_patch16_siglip_224", SMALL),
    "siglip_gap": ("vit_base_patch16_siglip_gap_224", SMALL),
    "map_beside_class_token": ("vit_base_patch16_224", SMALL | {"global_pool": "map"}),
    "token_with_fc_norm": ("vit_base_patch16_224", SMALL | {"fc_norm": True}),
    "dinov3": ("vit_small_patch16_dinov3", SMALL),
    "eva02": ("eva02_tiny_patch14_224", SMALL),
    "perception": ("vit_pe_core_base_patch16_224", SMALL | {"attn_pool_num_heads": 2, "mlp_ratio": 4}),
    "rope_ape": ("vit_small_patch16_rope_ape_224", SMALL),
}
SIZES = ((16, 16), (24, 24), (12, 28))


def record(name: str, architecture: str, arguments: dict) -> None:
    torch.manual_seed(0)
    model = timm.create_model(architecture, num_classes=5, **arguments).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
            parameter.copy_(parameter.half().float())
    with tempfile.TemporaryDirectory() as folder:
        model.pretrained_cfg = {**model.pretrained_cfg, "input_size": (3, 16, 16)}
        save_for_hf(model, folder, model_args=arguments, safe_serialization=True)
        config = (Path(folder) / "config.json").read_text()
    values = {f"weights:{key}": value.half().numpy() for key, value in model.state_dict().items()}
    module = importlib.import_module(type(model).__module__)
    for size in SIZES:
        other = timm.create_model(architecture, num_classes=5, **arguments | {"img_size": size}).eval()
        other.load_state_dict(module.checkpoint_filter_fn(dict(model.state_dict()), other))
        images = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(1)).half()
        with torch.no_grad():
            values[f"images:{size[0]}x{size[1]}"] = images.numpy()
            values[f"outputs:{size[0]}x{size[1]}"] = other(images.float()).numpy()
    np.savez_compressed(FOLDER / f"{name}.npz", config=np.array(json.dumps(json.loads(config))), **values)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, (architecture, arguments) in FAMILIES.items():
        record(name, architecture, arguments)
    print(sum(file.stat().st_size for file in FOLDER.iterdir()) // 1024, "KiB")
