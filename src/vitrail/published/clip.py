"""CLIP as published by OpenAI and by LAION: image towers with the projection into the space of texts."""

from vitrail.published.entry import Published

# Name -> repository, image size, heads.
_ROWS = {
    "clip-B/32": ("openai/clip-vit-base-patch32", 224, 12),
    "clip-B/16": ("openai/clip-vit-base-patch16", 224, 12),
    "clip-L/14": ("openai/clip-vit-large-patch14", 224, 16),
    "clip-L/14-336": ("openai/clip-vit-large-patch14-336", 336, 16),
    "openclip-B/32": ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", 224, 12),
    "openclip-B/16": ("laion/CLIP-ViT-B-16-laion2B-s34B-b88K", 224, 12),
    "openclip-L/14": ("laion/CLIP-ViT-L-14-laion2B-s32B-b82K", 224, 16),
    "openclip-H/14": ("laion/CLIP-ViT-H-14-laion2B-s32B-b79K", 224, 16),
}
_LAION = "LAION-2B, images and texts"

ROWS: tuple[Published, ...] = tuple(
    Published(
        name=name,
        source=f"hf:{repository}",
        licence="MIT",
        data=_LAION if name.startswith("open") else "400 million of OpenAI's images and texts",
        image_size=pixels,
        pixels="clip",
        num_heads=heads,
    )
    for name, (repository, pixels, heads) in _ROWS.items()
)
