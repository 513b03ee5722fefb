"""What was published about the robustness of Vision Transformers and ResNets, as data, to stand beside measurements.

Published figures are of large models on ImageNet; they suggest what to look at here, not what should come out.
"""

from dataclasses import dataclass

from vitrail.studies.stress.changes import Level


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the literature, and the measurement that speaks to it."""

    text: str
    source: str
    test: str
    """The test, or `corruptions` for the mean over all of them."""
    level: Level | None = None
    """The level that is looked at; None takes the mean over all levels."""


NASEER = "Naseer et al., Intriguing Properties of Vision Transformers, NeurIPS 2021"

CLAIMS = (
    Claim(
        text="with 80% of the patches covered at random, ViTs keep up to 60% accuracy on ImageNet, a ResNet-50 almost "
        "none",
        source=NASEER,
        test="occlusion-random",
        level=0.8,
    ),
    Claim(
        text="ViTs withstand covered foregrounds better than ResNets",
        source=NASEER,
        test="occlusion-salient",
        level=0.5,
    ),
    Claim(
        text="ViTs withstand covered backgrounds better than ResNets",
        source=NASEER,
        test="occlusion-background",
        level=0.5,
    ),
    Claim(text="shuffled tiles hurt ResNets more, until the grid gets fine", source=NASEER, test="shuffle", level=4),
    Claim(text="ViTs lean less on local texture than convolutional networks", source=NASEER, test="texture"),
    Claim(
        text="attention is a low-pass filter and convolution a high-pass one: noise of high frequency hurts ViTs less",
        source="Park and Kim, How Do Vision Transformers Work?, ICLR 2022",
        test="gaussian-noise",
    ),
    Claim(
        text="pre-trained on enough images, ViTs are at least as robust as ResNets to corruptions",
        source="Bhojanapalli et al., Understanding Robustness of Transformers for Image Classification, ICCV 2021",
        test="corruptions",
    ),
    Claim(
        text="convolutional networks that are trained by the recipe of ViTs are as robust to attacks as they are",
        source="Bai et al., Are Transformers More Robust Than CNNs?, NeurIPS 2021",
        test="pgd",
    ),
    Claim(text="one adversarial patch for all images hurts ViTs less than ResNets", source=NASEER, test="patch"),
    Claim(
        text="a patch fitted to each image, as here, hurts ViTs more than ResNets",
        source="Gu et al., Are Vision Transformers Robust to Patch Perturbations?, ECCV 2022",
        test="patch",
    ),
    Claim(
        text="so does one that is fitted to mislead attention, which ours is not",
        source="Fu et al., Patch-Fool, ICLR 2022",
        test="patch",
    ),
    Claim(
        text="networks trained on random crops gain from a somewhat larger size at test than in training",
        source="Touvron et al., Fixing the Train-Test Resolution Discrepancy, NeurIPS 2019",
        test="resolution",
        level=1.25,
    ),
)
