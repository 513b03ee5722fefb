"""Meta's releases: DeiT, DeiT III, MAE, DINO, DINOv2 and DINOv3.

Meta's own files of DeiT, MAE and DINO are pickles; timm publishes the same weights as safetensors with their settings.
"""

from vitrail.published.entry import Published

_HEADS = {"Ti": 3, "S": 6, "S+": 6, "B": 12, "L": 16, "H": 16, "H+": 20, "g": 24, "7B": 32}
_TIMM = {
    "deit-Ti/16": "deit_tiny_patch16_224.fb_in1k",
    "deit-S/16": "deit_small_patch16_224.fb_in1k",
    "deit-B/16": "deit_base_patch16_224.fb_in1k",
    "deit-B/16-384": "deit_base_patch16_384.fb_in1k",
    "deit-Ti/16-distilled": "deit_tiny_distilled_patch16_224.fb_in1k",
    "deit-S/16-distilled": "deit_small_distilled_patch16_224.fb_in1k",
    "deit-B/16-distilled": "deit_base_distilled_patch16_224.fb_in1k",
    "deit-B/16-distilled-384": "deit_base_distilled_patch16_384.fb_in1k",
    "deit3-S/16": "deit3_small_patch16_224.fb_in1k",
    "deit3-B/16": "deit3_base_patch16_224.fb_in1k",
    "deit3-L/16": "deit3_large_patch16_224.fb_in1k",
    "deit3-H/14": "deit3_huge_patch14_224.fb_in1k",
    "deit3-S/16-in21k": "deit3_small_patch16_224.fb_in22k_ft_in1k",
    "deit3-B/16-in21k": "deit3_base_patch16_224.fb_in22k_ft_in1k",
    "deit3-L/16-in21k": "deit3_large_patch16_224.fb_in22k_ft_in1k",
    "mae-B/16": "vit_base_patch16_224.mae",
    "mae-L/16": "vit_large_patch16_224.mae",
    "mae-H/14": "vit_huge_patch14_224.mae",
    "dino-S/16": "vit_small_patch16_224.dino",
    "dino-S/8": "vit_small_patch8_224.dino",
    "dino-B/16": "vit_base_patch16_224.dino",
    "dino-B/8": "vit_base_patch8_224.dino",
}
_DINOV2 = {"S": "small", "B": "base", "L": "large", "g": "giant"}
_DINOV3 = {
    "S": "vits16",
    "S+": "vits16plus",
    "B": "vitb16",
    "L": "vitl16",
    "H+": "vith16plus",
    "7B": "vit7b16",
}


def _size_of(name: str) -> str:
    """Return the size in a name: S of dino-S/16."""
    return name.partition("/")[0].partition("-")[2]


def _timm(name: str, repository: str) -> Published:
    family = name.partition("-")[0]
    labelled = family.startswith("deit")
    return Published(
        name=name,
        source=f"hf:timm/{repository}",
        licence="CC-BY-NC-4.0" if family == "mae" else "Apache-2.0",
        data="ImageNet-21k, then 1k" if "in22k" in repository else "ImageNet-1k",
        image_size=384 if name.endswith("384") else 224,
        pixels="timm",
        num_heads=_HEADS[_size_of(name)],
        classes=1000 if labelled else 0,
    )


def _dinov2(size: str, word: str, *, registers: bool) -> Published:
    middle, end = ("with-registers-", "-registers") if registers else ("", "")
    return Published(
        name=f"dinov2-{size}/14{end}",
        source=f"hf:facebook/dinov2-{middle}{word}",
        licence="Apache-2.0",
        data="LVD-142M, without labels",
        image_size=224,
        pixels="imagenet",
        num_heads=_HEADS[size],
    )


def _dinov3(size: str, word: str) -> Published:
    return Published(
        name=f"dinov3-{size}/16",
        source=f"hf:facebook/dinov3-{word}-pretrain-lvd1689m",
        licence="DINOv3 License",
        data="LVD-1689M, without labels",
        image_size=224,
        pixels="huggingface",
        num_heads=_HEADS[size],
        gated=True,
    )


ROWS: tuple[Published, ...] = (
    *(_timm(name, repository) for name, repository in _TIMM.items()),
    *(_dinov2(size, word, registers=registers) for registers in (False, True) for size, word in _DINOV2.items()),
    *(_dinov3(size, word) for size, word in _DINOV3.items()),
)
