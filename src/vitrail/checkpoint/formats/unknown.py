"""State dicts of no layout that is read: what each is, told by its names, and what to do."""

import re

from vitrail.checkpoint.formats.names import NAMES

# A name of a tensor -> what the model is, and what to do.
_MODELS = {
    r"to_patch_embedding\.": "a vit-pytorch model, which is not the paper's: it has LayerNorms around the patch "
    "projection and no bias in q, k and v, so no weights of it fit",
    r"embedding\.projection\.weight|root\.weight": "a state dict that has the tensor names of Vitrail, but "
    "not the header that names their model; write it with vitrail.save, which puts everything into one file",
    r"embeds\.proj\.weight": "a NaFlexViT of timm, whose patches come from images of any size and number, which no "
    "model here has; give a model of one image size, such as the VisionTransformer that it was made from",
    r"patch_embed\.backbone\.\d+\.(conv|bn)": "a timm model behind MobileCLIP's convolutions (vit_base_mci_224), which "
    "no model here has; give a CLIP whose patches are cut from the image",
    r"(layers|stages)\.\d+\.(blocks|residual_group)\.": "a transformer in stages of windows or pooled tokens (Swin, "
    "MViT and others), which no model here has; give a plain Vision Transformer",
    r"patch_embed\.(conv\.\d|proj\.\d\.)": "a transformer behind a convolutional stem (VOLO, XCiT and others), which "
    "no model here has; give a plain Vision Transformer",
    r"pixel_embed\.|patch_pos$": "a transformer in a transformer (TNT), which no model here has; give a plain Vision "
    "Transformer",
}


def why_unknown(names: set[str], origin: str) -> str:
    """Write what a state dict is, or at least what it holds."""
    for pattern, what in _MODELS.items():
        if any(re.match(pattern, name) for name in names):
            return f"{origin} is {what}."
    shown = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "") if names else "no tensors at all"
    return (
        f"{origin} is not of a layout that is known here, which are {', '.join(NAMES[:-1])} and {NAMES[-1]}; "
        f"it holds {shown}."
    )
