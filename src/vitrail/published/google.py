"""Google's releases: the paper's Vision Transformers, AugReg's, BiT's ResNets, and SigLIP."""

from dataclasses import replace

from vitrail.published.entry import Published

_HEADS = {"Ti": 3, "S": 6, "B": 12, "L": 16, "H": 16, "So400m": 16, "R26+S": 6, "R50+L": 16}
_VIT = "https://storage.googleapis.com/vit_models"
_BIT = "https://storage.googleapis.com/bit_models"
_IN1K, _IN21K = "ImageNet-1k", "ImageNet-21k"
_BOTH = f"{_IN21K}, then 1k"

# Our name -> the file of the pre-training, and of its fine-tuning to ImageNet at 224 pixels: those that "How to train
# your ViT?" recommends, as timm lists them. At 384 pixels the end of the latter is res_384.
_AUGREG = {
    "Ti/16": ("Ti_16-i21k-300ep-lr_0.001-aug_none-wd_0.03-do_0.0-sd_0.0", "lr_0.03"),
    "S/32": ("S_32-i21k-300ep-lr_0.001-aug_light1-wd_0.03-do_0.0-sd_0.0", "lr_0.03"),
    "S/16": ("S_16-i21k-300ep-lr_0.001-aug_light1-wd_0.03-do_0.0-sd_0.0", "lr_0.03"),
    "B/16": ("B_16-i21k-300ep-lr_0.001-aug_medium1-wd_0.1-do_0.0-sd_0.0", "lr_0.01"),
    "B/8": ("B_8-i21k-300ep-lr_0.001-aug_medium1-wd_0.1-do_0.0-sd_0.0", "lr_0.01"),
}
_SIGLIP = {
    "siglip-B/16": ("siglip-base-patch16-224", 224),
    "siglip-B/16-256": ("siglip-base-patch16-256", 256),
    "siglip-B/16-384": ("siglip-base-patch16-384", 384),
    "siglip-B/16-512": ("siglip-base-patch16-512", 512),
    "siglip-L/16-256": ("siglip-large-patch16-256", 256),
    "siglip-L/16-384": ("siglip-large-patch16-384", 384),
    "siglip-So400m/14": ("siglip-so400m-patch14-224", 224),
    "siglip-So400m/14-384": ("siglip-so400m-patch14-384", 384),
    "siglip2-B/16": ("siglip2-base-patch16-224", 224),
    "siglip2-B/16-256": ("siglip2-base-patch16-256", 256),
    "siglip2-B/16-384": ("siglip2-base-patch16-384", 384),
    "siglip2-L/16-256": ("siglip2-large-patch16-256", 256),
    "siglip2-So400m/14": ("siglip2-so400m-patch14-224", 224),
}


def _size_of(name: str) -> str:
    """Return the size in a name: B of siglip-B/16-256."""
    return name.rpartition("/")[0].rpartition("-")[2]


def _npz(name: str, path: str, data: str, image_size: int, classes: int, size: str) -> Published:
    return Published(
        name=name,
        source=path,
        licence="Apache-2.0",
        data=data,
        image_size=image_size,
        pixels="google",
        num_heads=_HEADS.get(size, 0),
        classes=classes,
    )


def _vit() -> list[Published]:
    """List the release of the paper: heads of zeros after ImageNet-21k, and 384 pixels after ImageNet."""
    rows = []
    for model in ("B/32", "B/16", "L/32", "L/16", "H/14"):
        file, size = f"ViT-{model.replace('/', '_')}", model.partition("/")[0]
        rows.append(_npz(f"vit-{model}-in21k", f"{_VIT}/imagenet21k/{file}.npz", _IN21K, 224, 21843, size))
        if model != "H/14":
            tuned = f"{_VIT}/imagenet21k+imagenet2012/{file}.npz"
            rows.append(_npz(f"vit-{model}-384", tuned, _BOTH, 384, 1000, size))
        if model in ("B/16", "L/16"):
            tuned = f"{_VIT}/imagenet21k+imagenet2012/{file}-224.npz"
            rows.append(_npz(f"vit-{model}", tuned, _BOTH, 224, 1000, size))
    return rows


def _augreg() -> list[Published]:
    rows = []
    for model, (file, rate) in _AUGREG.items():
        size, start = _size_of(f"-{model}"), f"{_VIT}/augreg/{file}"
        rows.append(_npz(f"augreg-{model}-in21k", f"{start}.npz", _IN21K, 224, 21843, size))
        tuned = "--".join((start, f"imagenet2012-steps_20k-{rate}-res_"))
        rows.append(_npz(f"augreg-{model}", f"{tuned}224.npz", _BOTH, 224, 1000, size))
        if model != "B/8":
            rows.append(_npz(f"augreg-{model}-384", f"{tuned}384.npz", _BOTH, 384, 1000, size))
    return rows


def _bit() -> list[Published]:
    """List BiT-S (ImageNet), BiT-M (ImageNet-21k), and BiT-M after ImageNet."""
    rows = []
    for model in ("R50x1", "R101x1", "R50x3", "R101x3", "R152x4"):
        rows.append(_npz(f"bit-S-{model}", f"{_BIT}/BiT-S-{model}.npz", _IN1K, 224, 1000, ""))
        rows.append(_npz(f"bit-M-{model}", f"{_BIT}/BiT-M-{model}.npz", _IN21K, 224, 21843, ""))
        tuned = _npz(f"bit-M-{model}-in1k", f"{_BIT}/BiT-M-{model}-ILSVRC2012.npz", _BOTH, 480, 1000, "")
        rows.append(replace(tuned, hints={"image_size": 480}))  # a ResNet takes any size, and its file states none
    return rows


def _siglip() -> list[Published]:
    return [
        Published(
            name=name,
            source=f"hf:google/{repository}",
            licence="Apache-2.0",
            data="WebLI, images and texts",
            image_size=pixels,
            pixels="huggingface",
            num_heads=_HEADS[_size_of(name)],
        )
        for name, (repository, pixels) in _SIGLIP.items()
    ]


ROWS: tuple[Published, ...] = (*_vit(), *_augreg(), *_bit(), *_siglip())
