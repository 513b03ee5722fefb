"""Inference of B/16 at 224 px in float32: Vitrail beside its peers, eager and compiled, in one process.

    benchmarks/peers.sh /tmp/peers && /tmp/peers/bin/python benchmarks/forward.py [--threads 2] [--quick]

Every model computes the same function: erf GELU, class token, 1000 classes. Vitrail's own default, the reference
release's tanh GELU, runs as an extra row.
"""

import argparse

import peers_shim  # noqa: F401  (must come before timm and torchvision)
import timm
import torch
import torch._inductor.config
import torchvision
import vit_pytorch
from contest import Contestant, contest, gemm_peak, save, show
from transformers import ViTConfig, ViTForImageClassification

import vitrail

FLOPS = 2 * 17.56e9


def timm_weights(model: vitrail.ViT) -> dict[str, torch.Tensor]:
    """Rename our weights for timm, to see that both compute the same."""
    names = {
        "embedding.projection": "patch_embed.proj",
        "embedding.class_token": "cls_token",
        "embedding.positions.table": "pos_embed",
        "encoder.blocks": "blocks",
        "encoder.norm": "norm",
        "attention.qkv": "attn.qkv",
        "attention.out": "attn.proj",
        "mlp.hidden": "mlp.fc1",
        "mlp.out": "mlp.fc2",
        "head.linear": "head",
    }
    renamed = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)
        if name == "patch_embed.proj.weight":
            tensor = tensor.unflatten(1, (3, 16, 16))
        renamed[name] = tensor[None] if name in ("cls_token", "pos_embed") else tensor
    return renamed


def models() -> dict[str, torch.nn.Module]:
    """Make every contestant in evaluation mode."""
    ours = vitrail.create("B/16", gelu="erf", seed=0)
    torch.nn.init.normal_(ours.head.linear.weight, std=0.02)
    theirs = timm.create_model("vit_base_patch16_224")
    theirs.load_state_dict(timm_weights(ours))
    networks = {
        "vitrail": ours,
        "vitrail (tanh GELU)": vitrail.create("B/16", seed=0),
        "timm": theirs,
        "Hugging Face": HuggingFace(ViTConfig(num_labels=1000)),
        "torchvision": torchvision.models.vit_b_16(),
        "vit-pytorch": vit_pytorch.ViT(
            image_size=224, patch_size=16, num_classes=1000, dim=768, depth=12, heads=12, mlp_dim=3072
        ),
    }
    for model in networks.values():
        model.eval()
    images = torch.randn(2, 3, 224, 224)
    difference = (ours(images) - theirs(images)).abs().max().item()
    print(f"vitrail and timm with the same weights: logits differ by at most {difference:.1e}")
    assert difference < 1e-4
    return networks


class HuggingFace(torch.nn.Module):
    """Unwrap the logits."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.model = ViTForImageClassification(config)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model(images).logits


def contestants(networks: dict[str, torch.nn.Module], images: torch.Tensor) -> dict[str, Contestant]:
    """Bind every model to the images."""
    return {name: (lambda model=model: model(images)) for name, model in networks.items()}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12, help="times each contestant runs")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--quick", action="store_true", help="leave out the compiled models, which take minutes")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    peak = gemm_peak()
    print(f"GEMM peak: {peak / 1e9:.0f} GFLOP/s with {args.threads} threads")
    tables = {}

    def measure(title: str, networks: dict[str, torch.nn.Module], batch: int) -> None:
        images = torch.randn(batch, 3, 224, 224)
        runs = contestants(networks, images)
        work = {"images": batch, "flops": batch * FLOPS}
        tables[title] = contest(runs, ours="vitrail", **work, rounds=args.rounds, peak=peak)
        show(title, tables[title])

    with torch.inference_mode():
        networks = models()
        for batch in args.batches:
            measure(f"B/16, eager, batch {batch}", networks, batch)
    torch._inductor.config.freezing = True
    with torch.no_grad():
        for batch in args.batches if not args.quick else ():
            torch.compiler.reset()
            compiled = {name: torch.compile(model) for name, model in networks.items()}
            measure(f"B/16, compiled and frozen, batch {batch}", compiled, batch)
    save("forward", tables, peak)


if __name__ == "__main__":
    main()
