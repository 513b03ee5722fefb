"""What was published about the robustness of Vision Transformers and ResNets, as data, to stand beside measurements.

Published figures are of large models on ImageNet; they suggest what to look at here, not what should come out.
"""

from dataclasses import dataclass

from vitrail.studies.stress.catalogue import Level


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
        text="attention is a low-pass filter and convolution a high-pass one: ViTs need fine detail less",
        source="Park and Kim, How Do Vision Transformers Work?, ICLR 2022",
        test="low-pass",
        level=0.25,
    ),
    Claim(
        text="pre-trained on enough images, ViTs are at least as robust as ResNets to corruptions",
        source="Bhojanapalli et al., Understanding Robustness of Transformers for Image Classification, ICCV 2021",
        test="corruptions",
    ),
    Claim(
        text="trained alike, ViTs are no more robust to attacks than convolutional networks",
        source="Bai et al., Are Transformers More Robust Than CNNs?, NeurIPS 2021",
        test="pgd",
    ),
    Claim(
        text="attacks on single patches hurt ViTs more than convolutional networks",
        source="Fu et al., Patch-Fool, ICLR 2022",
        test="patch",
    ),
    Claim(
        text="a somewhat larger size at test than in training helps networks trained on random crops",
        source="Touvron et al., Fixing the Train-Test Resolution Discrepancy, NeurIPS 2019",
        test="resolution",
        level=1.25,
    ),
)
