"""Load every Vision Transformer of timm, transformers and torchvision, and compare the outputs.

Run it in the environment that benchmarks/peers.sh makes:

    python benchmarks/sweep_published.py                    # prints a line for every model that is not exact
    python benchmarks/sweep_published.py --json FILE.json   # and keeps every verdict
    python benchmarks/sweep_published.py --only timm --match 'dinov3|clip'

Every architecture is built at depth 2 with random weights, moved off their initial values (norms, biases, scales,
positions and tokens too), and saved as its library does: a folder with config.json for timm and transformers, a state
dict for torchvision. Vitrail loads it and computes the same images. The verdict is

    exact     the largest difference is below 1e-5 of the largest output
    refused   Vitrail says in a sentence why it does not read the file
    wrong     anything else; there must be none

A timm model is loaded again from its bare state dict, with its name and image size as answers.
"""

import peers_shim  # noqa: F401  declares what torchvision's library would, so that it imports on a CPU

# isort: split
import argparse
import gc
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import timm
import torch
import torchvision
import transformers
from timm.models import save_for_hf
from torch import Tensor, nn

import vitrail
from vitrail import VitrailError

CLOSE = 1e-5
MOST_PARAMETERS = 6e8
TIMM_MODULES = (
    "beit",
    "deit",
    "eva",
    "naflexvit",
    "vision_transformer",
    "vision_transformer_hybrid",
    "vision_transformer_relpos",
    "vision_transformer_sam",
)
SMALL = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "patch_size": 8,
    "image_size": 32,
    "num_labels": 5,
}


class Case(NamedTuple):
    name: str
    folder: Path
    outputs: Callable[[Tensor], Tensor]
    image_size: tuple[int, int]
    pickle: bool = False


class Verdict(NamedTuple):
    name: str
    verdict: str
    detail: str


@torch.no_grad()
def randomised(model: nn.Module) -> nn.Module:
    """Move every weight off its initial value; those at zero and one matter most."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        spread = 0.1 if parameter.ndim > 1 else 0.3
        parameter.add_(torch.randn(parameter.shape, generator=generator) * spread * (parameter.std(correction=0) + 0.1))
    return model.eval()


def timm_cases(folder: Path, match: str) -> Iterator[Case]:
    names = sorted({name for module in TIMM_MODULES for name in timm.list_models(module=module)})
    for name in filter(re.compile(match).search, names):
        depth = {} if name.startswith("sapiens") or "naflex" in name else {"depth": 2}
        with torch.device("meta"):
            try:
                timm.create_model(name, num_classes=5, **depth)
            except (TypeError, AssertionError, ValueError, IndexError):  # what it says at depth 2 is about timm
                depth = {}
            size = sum(parameter.numel() for parameter in timm.create_model(name, num_classes=5, **depth).parameters())
        if size > MOST_PARAMETERS:
            print(f"({name} has {size / 1e9:.1f}e9 parameters and was left out)", file=sys.stderr)
            continue
        model = randomised(timm.create_model(name, num_classes=5, **depth))
        config = dict(model.pretrained_cfg)
        save_for_hf(model, folder, model_args=depth, safe_serialization=True)
        size = tuple(config["input_size"][1:])
        if hasattr(model, "patch_embed") and not getattr(model.patch_embed, "dynamic_img_pad", False):
            size = tuple(getattr(model.patch_embed, "img_size", None) or size)
        yield Case(name, folder, model, size)


def transformers_cases(folder: Path, match: str) -> Iterator[Case]:
    t = transformers
    text = {
        "hidden_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 3,
        "intermediate_size": 48,
        "vocab_size": 99,
    }
    wide_text = text | {"hidden_size": 48, "num_attention_heads": 4}
    swin = {"image_size": 32, "patch_size": 2, "embed_dim": 12, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4}
    dino = {name: value for name, value in SMALL.items() if name != "intermediate_size"} | {"mlp_ratio": 2}

    def logits(model: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda images: model(images).logits

    def pooled(model: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda images: model(images).pooler_output

    def first(model: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda images: model(images).last_hidden_state[:, 0]

    def mean(model: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda images: model(images).last_hidden_state.mean(dim=1)

    def embeds(model: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda images: model(images).image_embeds

    def image_features(model: nn.Module) -> Callable[[Tensor], Tensor]:
        def run(images: Tensor) -> Tensor:
            features = model.get_image_features(images)
            return features if isinstance(features, Tensor) else features.pooler_output

        return run

    def unmasked(model: nn.Module) -> Callable[[Tensor], Tensor]:
        model.config.mask_ratio = 0.0

        def run(images: Tensor) -> Tensor:
            noise = torch.arange(16.0).expand(len(images), -1)
            inner = model.vit if hasattr(model, "vit") else model
            return inner(images, noise=noise).last_hidden_state[:, 0]

        return run

    makers: dict[str, tuple[Callable[[], nn.Module], Callable[[nn.Module], Callable[[Tensor], Tensor]]]] = {
        "ViTForImageClassification": (lambda: t.ViTForImageClassification(t.ViTConfig(**SMALL)), logits),
        "ViTForImageClassification, quick GELU": (
            lambda: t.ViTForImageClassification(t.ViTConfig(**SMALL, hidden_act="quick_gelu")),
            logits,
        ),
        "ViTForImageClassification, no qkv bias": (
            lambda: t.ViTForImageClassification(t.ViTConfig(**SMALL, qkv_bias=False)),
            logits,
        ),
        "ViTModel": (lambda: t.ViTModel(t.ViTConfig(**SMALL)), pooled),
        "ViTModel, no pooler": (lambda: t.ViTModel(t.ViTConfig(**SMALL), add_pooling_layer=False), first),
        "ViTModel, pooler of relu": (lambda: t.ViTModel(t.ViTConfig(**SMALL, pooler_act="relu")), pooled),
        "ViTForMaskedImageModeling": (lambda: t.ViTForMaskedImageModeling(t.ViTConfig(**SMALL)), first),
        "DeiTForImageClassification": (lambda: t.DeiTForImageClassification(t.DeiTConfig(**SMALL)), logits),
        "DeiTForImageClassificationWithTeacher": (
            lambda: t.DeiTForImageClassificationWithTeacher(t.DeiTConfig(**SMALL)),
            logits,
        ),
        "DeiTModel": (lambda: t.DeiTModel(t.DeiTConfig(**SMALL)), pooled),
        "ViTMAEModel": (lambda: t.ViTMAEModel(t.ViTMAEConfig(**SMALL)), unmasked),
        "ViTMAEForPreTraining": (lambda: t.ViTMAEForPreTraining(t.ViTMAEConfig(**SMALL)), unmasked),
        "ViTMSNModel": (lambda: t.ViTMSNModel(t.ViTMSNConfig(**SMALL)), first),
        "ViTMSNForImageClassification": (lambda: t.ViTMSNForImageClassification(t.ViTMSNConfig(**SMALL)), logits),
        "IJepaModel": (lambda: t.IJepaModel(t.IJepaConfig(**SMALL)), mean),
        "IJepaForImageClassification": (lambda: t.IJepaForImageClassification(t.IJepaConfig(**SMALL)), logits),
        "Dinov2Model": (lambda: t.Dinov2Model(t.Dinov2Config(**dino)), pooled),
        "Dinov2Model, SwiGLU": (lambda: t.Dinov2Model(t.Dinov2Config(**dino, use_swiglu_ffn=True)), pooled),
        "Dinov2ForImageClassification": (lambda: t.Dinov2ForImageClassification(t.Dinov2Config(**dino)), logits),
        "Dinov2WithRegistersModel": (
            lambda: t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(**dino)),
            pooled,
        ),
        "Dinov2WithRegistersForImageClassification": (
            lambda: t.Dinov2WithRegistersForImageClassification(t.Dinov2WithRegistersConfig(**dino)),
            logits,
        ),
        "DINOv3ViTModel": (lambda: t.DINOv3ViTModel(t.DINOv3ViTConfig(**SMALL, num_register_tokens=4)), pooled),
        "DINOv3ViTModel, SwiGLU": (
            lambda: t.DINOv3ViTModel(
                t.DINOv3ViTConfig(**SMALL, num_register_tokens=4, use_gated_mlp=True, hidden_act="silu")
            ),
            pooled,
        ),
        "SiglipVisionModel": (lambda: t.SiglipVisionModel(t.SiglipVisionConfig(**SMALL)), pooled),
        "SiglipModel": (
            lambda: t.SiglipModel(t.SiglipConfig(vision_config=SMALL, text_config=wide_text)),
            image_features,
        ),
        "SiglipForImageClassification": (
            lambda: t.SiglipForImageClassification(t.SiglipConfig(vision_config=SMALL, num_labels=5)),
            logits,
        ),
        "Siglip2VisionModel": (
            lambda: t.Siglip2VisionModel(t.Siglip2VisionConfig(**SMALL | {"num_patches": 16})),
            lambda _: lambda images: images.new_zeros(len(images), 1),
        ),
        "CLIPVisionModel": (lambda: t.CLIPVisionModel(t.CLIPVisionConfig(**SMALL)), pooled),
        "CLIPVisionModelWithProjection": (
            lambda: t.CLIPVisionModelWithProjection(t.CLIPVisionConfig(**SMALL, projection_dim=20)),
            embeds,
        ),
        "CLIPModel": (
            lambda: t.CLIPModel(t.CLIPConfig(vision_config=SMALL, text_config=text, projection_dim=20)),
            image_features,
        ),
        "CLIPForImageClassification": (
            lambda: t.CLIPForImageClassification(t.CLIPConfig(vision_config=SMALL, num_labels=5)),
            logits,
        ),
        "BeitForImageClassification": (lambda: t.BeitForImageClassification(t.BeitConfig(**SMALL)), logits),
        "Data2VecVisionForImageClassification": (
            lambda: t.Data2VecVisionForImageClassification(t.Data2VecVisionConfig(**SMALL)),
            logits,
        ),
        "YolosModel": (lambda: t.YolosModel(t.YolosConfig(**SMALL | {"image_size": [32, 32]})), first),
        "Aimv2VisionModel": (lambda: t.Aimv2VisionModel(t.Aimv2VisionConfig(**SMALL)), pooled),
        "VitDetModel": (lambda: t.VitDetModel(t.VitDetConfig(**SMALL)), first),
        "SwinForImageClassification": (
            lambda: t.SwinForImageClassification(t.SwinConfig(**swin)),
            logits,
        ),
        "PixioModel": (lambda: t.PixioModel(t.PixioConfig(**SMALL)), pooled),
        "MLCDVisionModel": (lambda: t.MLCDVisionModel(t.MLCDVisionConfig(**SMALL)), pooled),
    }  # fmt: skip
    for name, (make, outputs) in makers.items():
        if not re.search(match, name):
            continue
        try:
            torch.manual_seed(0)
            model = randomised(make())
        except (AttributeError, TypeError) as error:
            print(f"(transformers {transformers.__version__} has no {name} like this: {error})", file=sys.stderr)
            continue
        model.save_pretrained(folder)
        yield Case(name, folder, outputs(model), (32, 32))


def torchvision_cases(folder: Path, match: str) -> Iterator[Case]:
    sizes = {"b": (12, 768, 3072), "l": (16, 1024, 4096), "h": (16, 1280, 5120)}
    for name in ("vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"):
        if re.search(match, name):
            heads, dim, mlp_dim = sizes[name[4]]
            model = torchvision.models.VisionTransformer(
                image_size=224,
                patch_size=int(name[-2:]),
                num_layers=2,
                num_heads=heads,
                hidden_dim=dim,
                mlp_dim=mlp_dim,
                num_classes=5,
            )
            path = folder / "model.pth"
            torch.save(randomised(model).state_dict(), path)
            yield Case(name, path, model, (224, 224), pickle=True)


@torch.no_grad()
def judge(case: Case, path: Path, **answers: object) -> Verdict:
    images = torch.randn(
        1 if case.image_size[0] > 256 else 2, 3, *case.image_size, generator=torch.Generator().manual_seed(1)
    )
    try:
        model = vitrail.load(path, pickle=case.pickle, **answers)
    except VitrailError as error:
        return Verdict(case.name, "refused", str(error).replace(str(path.parent), "").splitlines()[0])
    except Exception as error:
        return Verdict(case.name, "wrong", f"{type(error).__name__}: {error}")
    wanted = case.outputs(images)
    try:
        given = model(images)
    except Exception as error:
        return Verdict(case.name, "wrong", f"{type(error).__name__}: {error}")
    if given.shape != wanted.shape:
        return Verdict(case.name, "wrong", f"gives {tuple(given.shape)}, not {tuple(wanted.shape)}")
    off = ((given - wanted).abs().max() / wanted.abs().max()).item()
    return Verdict(case.name, "exact" if off < CLOSE else "wrong", f"{off:.1e}")


def sweep(library: str, match: str) -> dict[str, list[Verdict]]:
    cases = {"timm": timm_cases, "transformers": transformers_cases, "torchvision": torchvision_cases}[library]
    verdicts: dict[str, list[Verdict]] = {library: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in cases(folder, match):
            answers = {"num_heads": {"vit_b": 12}.get(case.name[:5], 16)} if library == "torchvision" else {}
            verdicts[library].append(judge(case, case.folder, **answers))
            if library == "timm":
                bare = folder / "bare.safetensors"
                (folder / "model.safetensors").rename(bare)
                answers = {"architecture": case.name, "image_size": case.image_size}
                verdicts.setdefault("timm, bare", []).append(judge(case, bare, **answers))
            for file in folder.iterdir():
                file.unlink()
            gc.collect()  # models hold themselves in cycles, and each is large
            for name, latest in ((name, kept[-1]) for name, kept in verdicts.items()):
                if latest.verdict == "wrong" or "-v" in sys.argv:
                    print(f"{name} {latest.verdict:8} {latest.name}: {latest.detail}", flush=True)
    return verdicts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["timm", "transformers", "torchvision"])
    parser.add_argument("--match", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, list[Verdict]] = {}
    for library in [arguments.only] if arguments.only else ["timm", "transformers", "torchvision"]:
        results |= sweep(library, arguments.match)
    for name, verdicts in results.items():
        print(name, dict(Counter(verdict.verdict for verdict in verdicts)), flush=True)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({name: [v._asdict() for v in vs] for name, vs in results.items()}, indent=1)
        )
    sys.exit(any(verdict.verdict == "wrong" for verdicts in results.values() for verdict in verdicts))
