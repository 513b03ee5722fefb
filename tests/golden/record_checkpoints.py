"""Record tiny models of timm and torchvision (weights, images, logits) for the tests of tests/checkpoint.

Run it in an environment that has both, and Vitrail (see benchmarks/peers.sh):

    python tests/golden/record_checkpoints.py            # writes tests/golden/checkpoints/*.npz anew
    python tests/golden/record_checkpoints.py --check    # lets timm and torchvision load what Vitrail writes

Weights are rounded to float16 and stored so, which loses nothing that the model has; logits are computed in float64.
"""

import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import timm
import torch
import torchvision
from timm.layers import StdConv2d, StdConv2dSame
from timm.models.resnetv2 import ResNetV2, create_resnetv2_stem
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_hybrid import HybridEmbed
from torch import nn
from torchvision.models import VisionTransformer as TorchvisionTransformer

FOLDER = Path(__file__).parent / "checkpoints"
SMALL = {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "mlp_ratio": 2.0, "num_classes": 5}


def timm_vit(**settings) -> VisionTransformer:
    return VisionTransformer(**{"img_size": (16, 24), **SMALL, **settings})


def timm_hybrid(layers: tuple[int, ...], patch_size: int) -> VisionTransformer:
    convolution = partial(StdConv2dSame, eps=1e-8)
    if layers:
        backbone = ResNetV2(
            layers=layers,
            channels=(128, 256),
            stem_chs=32,
            num_classes=0,
            global_pool="",
            preact=False,
            stem_type="same",
            conv_layer=convolution,
        )
    else:
        backbone = create_resnetv2_stem(3, 32, stem_type="same", preact=False, conv_layer=convolution)
    embed = partial(HybridEmbed, backbone=backbone)
    return VisionTransformer(img_size=(32, 48), embed_layer=embed, **{**SMALL, "patch_size": patch_size})


def timm_bit() -> ResNetV2:
    return ResNetV2(
        layers=(1, 2),
        channels=(128, 256),
        stem_chs=32,
        num_classes=5,
        stem_type="fixed",
        conv_layer=partial(StdConv2d, eps=1e-8),
    )


def torchvision_vit(**settings) -> TorchvisionTransformer:
    sizes = {"image_size": 24, "patch_size": 8, "num_layers": 2, "num_heads": 3, "hidden_dim": 24, "mlp_dim": 48}
    return TorchvisionTransformer(**sizes, num_classes=5, **settings)


# What to record -> how to make it, and the size of its images.
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, int]]] = {
    "timm_token": (timm_vit, (16, 24)),
    "timm_mean": (partial(timm_vit, global_pool="avg", class_token=False), (16, 24)),
    "timm_mean_beside_class_token": (partial(timm_vit, global_pool="avg"), (16, 24)),
    "timm_attention": (partial(timm_vit, global_pool="map", class_token=False), (16, 24)),
    "timm_no_class_entry": (partial(timm_vit, no_embed_class=True), (16, 24)),
    "timm_hybrid": (partial(timm_hybrid, (1, 1), 1), (32, 48)),
    "timm_hybrid_root": (partial(timm_hybrid, (), 4), (32, 48)),
    "timm_bit": (timm_bit, (40, 48)),
    "torchvision_token": (torchvision_vit, (24, 24)),
    "torchvision_representation": (partial(torchvision_vit, representation_size=10), (24, 24)),
}


@torch.no_grad()
def randomised(model: nn.Module) -> nn.Module:
    """Move every weight off its initial value, to one that float16 holds."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator) * 0.1
        parameter.copy_((parameter + noise).half().float())
    return model.eval()


@torch.no_grad()
def record(name: str) -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    make, size = MODELS[name]
    model = randomised(make())
    images = torch.randn(2, 3, *size).half().float()
    values = {f"weight:{key}": value.half().numpy() for key, value in model.state_dict().items()}
    values["images"] = images.half().numpy()
    values["logits"] = model.double()(images.double()).numpy()
    return values


@torch.no_grad()
def difference(theirs: nn.Module, ours: nn.Module, size: tuple[int, int]) -> float:
    images = torch.randn(2, 3, *size, generator=torch.Generator().manual_seed(1)).double()
    return (theirs.eval().double()(images) - ours.double()(images)).abs().max().item()


@torch.no_grad()
def check() -> None:
    """Let the libraries load, by their own code, what Vitrail writes; print the largest difference of the logits."""
    from safetensors.torch import load_file

    import vitrail

    folder = Path(tempfile.mkdtemp())
    for name, (make, size) in MODELS.items():
        source = make()
        state = {key: value.contiguous() for key, value in randomised(source).state_dict().items()}
        torch.save(state, folder / "source.pth")
        heads = {} if name == "timm_bit" else {"num_heads": 3}
        ours = vitrail.load(folder / "source.pth", pickle=True, image_size=size, **heads)
        vitrail.save(ours, folder / "x.safetensors", to=name.split("_")[0])
        theirs = make()
        if name == "timm_no_class_entry":  # comes back with the zero entry that timm's default has
            theirs = timm_vit()
        theirs.load_state_dict(load_file(folder / "x.safetensors"))
        print(f"{name}: {difference(theirs, ours, size):.1e}")

    for name, pool in (("timm_token", "token"), ("timm_mean_beside_class_token", "avg")):
        torch.save(randomised(MODELS[name][0]()).state_dict(), folder / "source.pth")
        ours = vitrail.load(folder / "source.pth", pickle=True, image_size=(16, 24), num_heads=3, gelu="tanh")
        vitrail.save(ours, folder / pool, to="timm", labels=list("abcde"))
        theirs = timm.create_model(f"local-dir:{folder / pool}", pretrained=True)
        assert theirs.pretrained_cfg["label_names"] == list("abcde")
        print(f"timm's own folder, {pool}: {difference(theirs, ours, (16, 24)):.1e}")

    settings = {"dim": 64, "depth": 2, "num_heads": 1, "mlp_dim": 128, "num_classes": 5, "image_size": (32, 32)}
    for name, changes, dialect in (
        ("token", {}, "google"),
        ("mean", {"pool": "mean"}, "google"),
        ("big_vision mean", {"pool": "mean"}, "big-vision"),
        ("big_vision attention", {"pool": "attention"}, "big-vision"),
    ):
        config = vitrail.ViTConfig(**settings, patch_size=(8, 8), **changes)
        ours = randomised(vitrail.build(config, seed=0))
        vitrail.save(ours, folder / "x.npz", to=dialect)
        pool = {"mean": "avg", "attention": "map"}.get(config.pool, "token")
        theirs = VisionTransformer(
            img_size=32,
            patch_size=8,
            embed_dim=64,
            depth=2,
            num_heads=1,
            mlp_ratio=2.0,
            num_classes=5,
            global_pool=pool,
            class_token=pool == "token",
            fc_norm=False,
            act_layer="gelu_tanh",
        )
        theirs.load_pretrained(str(folder / "x.npz"), prefix="params/" if dialect == "big-vision" else "")
        print(f"timm reads our Google file, {name}: {difference(theirs, ours, (32, 32)):.1e}")

    torch.save(randomised(timm_bit()).state_dict(), folder / "bit.pth")
    ours = vitrail.load(folder / "bit.pth", pickle=True)
    vitrail.save(ours, folder / "bit.npz", to="google", lossy=True)
    theirs = timm_bit()
    theirs.load_pretrained(str(folder / "bit.npz"))
    print(f"timm reads our BiT file: {difference(theirs, ours, (40, 40)):.1e}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "--check" in sys.argv:
        check()
        sys.exit()
    FOLDER.mkdir(exist_ok=True)
    versions = f"timm {timm.__version__}, torchvision {torchvision.__version__}"
    for name in MODELS:
        path = FOLDER / f"{name}.npz"
        np.savez_compressed(path, recorded_with=np.array(versions), **record(name))
        print(path.name, f"{path.stat().st_size / 1024:.0f} KiB", versions)
