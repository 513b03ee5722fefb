"""Studies of the model: positions (Table 8), pooling (Fig. 9), shape (Fig. 8), axial (Fig. 13), mixers."""

from collections.abc import Sequence
from typing import Any

from vitrail.model.mixer_settings import AxialAttention as Axial
from vitrail.model.mixer_settings import MixerConfig, WindowAttention, as_mixer
from vitrail.runs.choose import choose_side
from vitrail.runs.draft import Facts
from vitrail.studies.bases import resnet, vit
from vitrail.studies.study import Claim, Point, Study, Variant, crossed

PLACES = {"input": "input", "every-layer": "every layer", "every-layer-shared": "every layer, shared"}
TABLE_8 = {
    ("none", "input"): 0.61382,
    ("1-D", "input"): 0.64206,
    ("1-D", "every layer"): 0.63964,
    ("1-D", "every layer, shared"): 0.64292,
    ("2-D", "input"): 0.64001,
    ("2-D", "every layer"): 0.64046,
    ("2-D", "every layer, shared"): 0.64022,
    ("relative", "input"): 0.64032,
}


def _positions(facts: Facts, _: Sequence[str]) -> list[Variant]:
    kinds = {"1-D": "learned-1d", "2-D": "learned-2d"}
    added = [
        Variant(name=f"{short}, {words}", line=words, model=vit(facts, positions=kind, position_placement=placement))
        for short, kind in kinds.items()
        for placement, words in PLACES.items()
    ]
    none = Variant(name="none, input", line="input", model=vit(facts, positions="none"))
    relative = Variant(name="relative, input", line="input", model=vit(facts, positions="relative"))
    return [none, *added, relative]


POSITIONS = Study(
    name="positions",
    question="Do positions matter, and which?",
    paper="Some positions are 2.5 to 3 points better than none; the kinds and places hardly differ.",
    source="Table 8",
    measures=("accuracy",),
    variants=_positions,
    claims=(
        Claim(better="1-D, input", worse="none, input"),
        Claim(better="2-D, input", worse="none, input"),
        Claim(better="relative, input", worse="none, input"),
        Claim(better="2-D, input", worse="1-D, input"),
    ),
    points=tuple(Point(line=place, name=f"{kind}, {place}", value=value) for (kind, place), value in TABLE_8.items()),
    paper_label="5-shot accuracy on ImageNet, ViT-B/16",
)

RATES = (3e-4, 1e-3, 3e-3)


def _pooling(facts: Facts, _: Sequence[str]) -> list[Variant]:
    adam = {"optimizer.name": "adam", "optimizer.beta2": 0.999}
    kinds = {"class token": vit(facts, pool="class-token"), "mean": vit(facts, pool="mean")}
    return crossed(kinds, {f"rate {rate:g}": {"x": rate, "settings": adam | {"schedule.peak": rate}} for rate in RATES})


POOLING = Study(
    name="pooling",
    question="Class token or mean over patches, each at several learning rates?",
    paper="Both work equally well, but need different learning rates: the mean a lower one (8e-4 and 3e-4).",
    source="App. D.3, Fig. 9",
    variants=_pooling,
    x_label="learning rate",
    claims=tuple(Claim(better=f"mean, rate {rate:g}", worse=f"class token, rate {rate:g}") for rate in RATES),
)


def _shape(facts: Facts, _: Sequence[str]) -> list[Variant]:
    side = choose_side(facts)
    sizes: dict[str, dict[str, dict[str, Any]]] = {
        "depth": {f"depth {depth}": {"depth": depth} for depth in (2, 8)},
        "width": {f"width {dim}": {"dim": dim} for dim in (32, 128)},
        "MLP": {f"MLP {width}": {"mlp_dim": width} for width in (64, 256)},
        "patch": {f"{cells}x{cells} patches": {"patch_size": (side // cells, side // cells)} for cells in PATCH_GRIDS},
    }
    base = Variant(name="base", model=vit(facts, pool="mean"))
    return [base] + [
        Variant(name=name, line=line, model=vit(facts, pool="mean", **changes))
        for line, values in sizes.items()
        for name, changes in values.items()
    ]


PATCH_GRIDS = (4, 16)
"""Rows and columns of the coarser grid and of the finer one; the base has 8."""

SHAPE = Study(
    name="shape",
    question="Which dimension of the model is worth its compute: depth, width, MLP or patch?",
    paper="Depth helps most, with less to gain after 16 layers; width least; smaller patches help robustly.",
    source="App. D.2, Fig. 8",
    variants=_shape,
    claims=(
        Claim(better="depth 8", worse="base"),
        Claim(better="width 128", worse="base"),
        Claim(better="MLP 256", worse="base"),
        Claim(better="16x16 patches", worse="base"),
    ),
    x_label="exaFLOPs of training",
    compute_axis=True,
)


def _axial(facts: Facts, _: Sequence[str]) -> list[Variant]:
    return [
        Variant(name="ViT", line="ViT", model=vit(facts, pool="mean")),
        Variant(name="Axial-ViT", line="ViT", model=vit(facts, pool="mean", depth=8, mixer=Axial())),
        Variant(name="ResNet", line="ResNet", model=resnet(facts)),
        Variant(name="AxialResNet", line="ResNet", model=resnet(facts, axial=True)),
    ]


AXIAL = Study(
    name="axial",
    question="What does attention along rows and columns give, and cost?",
    paper="Axial-ViT-B beats ViT-B at equal patch size and costs more compute; AxialResNet is slow as written.",
    source="App. D.6, Fig. 13",
    measures=("accuracy", "images_per_second"),
    variants=_axial,
    claims=(Claim(better="Axial-ViT", worse="ViT"), Claim(better="AxialResNet", worse="ResNet")),
    x_label="exaFLOPs of training",
    compute_axis=True,
)


def _mixers(facts: Facts, _: Sequence[str]) -> list[Variant]:
    mixers = {kind: as_mixer(kind) for kind in MixerConfig.members} | {"window": WindowAttention(size=4)}
    return [Variant(name=kind, model=vit(facts, pool="mean", mixer=mixer)) for kind, mixer in mixers.items()]


MIXERS = Study(
    name="mixers",
    question="Is it attention, or the frame of norms, residuals and MLPs around it?",
    paper="Not in the paper. Published on ImageNet: MLP-Mixer-B/16 76.4, PoolFormer-S12 77.2, identity 74.3.",
    source="MetaFormer (Yu et al. 2022)",
    variants=_mixers,
    claims=tuple(Claim(better="attention", worse=kind) for kind in ("identity", "pooling", "convolution", "mlp")),
)
