"""Studies of data and compute: data-size (Fig. 3, 4), scaling (Fig. 5), resolution, transfer, speed (App. D.5)."""

from collections.abc import Sequence

from vitrail.model.build import configure
from vitrail.recipes.results import TABLE_6
from vitrail.runs.choose import choose_side
from vitrail.runs.draft import Facts
from vitrail.studies.bases import hybrid, resnet_like, vit
from vitrail.studies.study import Claim, Point, Study, Variant

FRACTIONS = (0.125, 0.25, 0.5, 1.0)


def _data_size(facts: Facts, _: Sequence[str]) -> list[Variant]:
    base = vit(facts, pool="mean")
    families = {"ViT": base, "hybrid": hybrid(facts), "ResNet": resnet_like(facts, base)}
    return [
        Variant(
            name=f"{family}, {fraction:.3g}",
            line=family,
            x=facts.images * fraction,
            model=model,
            fraction=fraction,
            settings={"patience": 3},
        )
        for family, model in families.items()
        for fraction in FRACTIONS
    ]


DATA_SIZE = Study(
    name="data-size",
    question="How much data does each family need?",
    paper="ResNets are better with little data, Vision Transformers with much: the lines cross (9M to 300M images).",
    source="Fig. 3, 4",
    measures=("accuracy", "fewshot"),
    variants=_data_size,
    claims=(
        Claim(better="ResNet, 0.125", worse="ViT, 0.125"),
        Claim(better="ViT, 1", worse="ResNet, 1"),
        Claim(better="hybrid, 1", worse="ViT, 1"),
    ),
    x_label="training images",
)


def _scaling(facts: Facts, _: Sequence[str]) -> list[Variant]:
    sizes = {"small": (48, 3), "middle": (96, 4), "large": (144, 6)}
    variants = []
    for name, (dim, depth) in sizes.items():
        shape = {"dim": dim, "depth": depth, "mlp_dim": 2 * dim}
        base = vit(facts, pool="mean", **shape)
        families = {"ViT": base, "hybrid": hybrid(facts, **shape), "ResNet": resnet_like(facts, base)}
        variants += [Variant(name=f"{family}, {name}", line=family, model=model) for family, model in families.items()]
    return variants


SCALING = Study(
    name="scaling",
    question="What does each family make of its compute?",
    paper="ViT needs 2 to 4 times less compute than a ResNet for the same quality; hybrids lead at small compute only.",
    source="Fig. 5, Table 6",
    variants=_scaling,
    claims=(Claim(better="ViT, large", worse="ResNet, large"), Claim(better="hybrid, small", worse="ViT, small")),
    x_label="exaFLOPs of training",
    compute_axis=True,
    fit=True,
    points=tuple(
        Point(line=row.family, name=row.model, x=float(row.exaflops), value=row.imagenet / 100) for row in TABLE_6
    ),
    paper_label="ImageNet top-1 after fine-tuning",
)


def _resolution(facts: Facts, _: Sequence[str]) -> list[Variant]:
    side = choose_side(facts)
    model = vit(facts, pool="mean")
    return [
        Variant(name=f"{side} px throughout", model=model, image_size=side),
        Variant(name=f"{side // 2} px, then {side} px", model=model, image_size=side // 2),
    ]


RESOLUTION = Study(
    name="resolution",
    question="Train on small images and fine-tune on large ones?",
    paper="Fine-tuning at a higher resolution than pre-training is often better; positions are interpolated.",
    source="Sec. 3.2",
    task="enlarge",
    variants=_resolution,
)


def _transfer(_: Facts, names: Sequence[str]) -> list[Variant]:
    variants = []
    for target, name in enumerate(names):
        for source, other in enumerate(names):
            if source == target:
                variants.append(Variant(name=f"{name} from scratch", line=name, target=target))
            else:
                variants.append(Variant(name=f"{other} to {name}", line=name, source=source, target=target))
    return variants


TRANSFER = Study(
    name="transfer",
    question="Which data set helps which?",
    paper="Larger and more general data sets transfer better (Table 5: JFT above ImageNet-21k above ImageNet).",
    source="Table 5",
    task="transfer",
    variants=_transfer,
    data_sets=2,
)

SPEED_SIZES = (64, 128, 224)


def _speed(_: Facts, __: Sequence[str]) -> list[Variant]:
    return [
        Variant(
            name=f"{name}, {side} px", line=name, x=float(side), model=configure(name, image_size=side), image_size=side
        )
        for name in ("R50x1", "B/32", "B/16", "L/32")
        for side in SPEED_SIZES
    ]


SPEED = Study(
    name="speed",
    question="How fast is each model on this machine, and how large a batch fits?",
    paper="On a TPUv3 core ViTs are as fast as ResNets of like cost, and need less memory for each image.",
    source="App. D.5, Fig. 12",
    task="speed",
    measures=("images_per_second",),
    variants=_speed,
    x_label="input size in pixels",
    chance=False,
)
