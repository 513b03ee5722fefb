"""Studies of data and compute: data-size (Fig. 3, 4), scaling (Fig. 5), resolution, transfer, speed (App. D.5)."""

from collections.abc import Sequence

from vitrail.model.build import configure
from vitrail.model.family import ModelConfig
from vitrail.recipes.results import TABLE_5, TABLE_6
from vitrail.runs.choose import choose_side
from vitrail.runs.draft import Facts
from vitrail.studies.bases import hybrid, resnet_like, vit
from vitrail.studies.study import Claim, Point, Study, Variant, crossed

FRACTIONS = (0.125, 0.25, 0.5, 1.0)


def _families(facts: Facts, **shape: int) -> dict[str, ModelConfig]:
    """Return a Vision Transformer, a hybrid of the same shape, and a ResNet of the same cost."""
    base = vit(facts, pool="mean", **shape)
    return {"ViT": base, "hybrid": hybrid(facts, **shape), "ResNet": resnet_like(facts, base)}


def _data_size(facts: Facts, _: Sequence[str]) -> list[Variant]:
    parts = {
        f"{fraction:.3g}": {"x": facts.images * fraction, "fraction": fraction, "settings": {"patience": 3}}
        for fraction in FRACTIONS
    }
    return crossed(_families(facts), parts)


DATA_SIZE = Study(
    name="data-size",
    question="How much data does each family need?",
    paper="ResNets are better with little data, Vision Transformers with much: the lines cross (9M to 300M images).",
    source="Fig. 3, 4, Table 5",
    measures=("accuracy", "fewshot", "finetuned"),
    variants=_data_size,
    claims=(
        Claim(better="ResNet, 0.125", worse="ViT, 0.125"),
        Claim(better="ViT, 1", worse="ResNet, 1"),
        Claim(better="hybrid, 1", worse="ViT, 1"),
    ),
    x_label="training images",
    points=tuple(
        Point(line=model, name=f"{model}, {data}", x=images, value=value / 100)
        for data, images in (("imagenet1k", 1.3e6), ("imagenet21k", 14e6), ("jft300m", 303e6))
        for model, value in TABLE_5[data]["imagenet"].items()
    ),
    paper_label="ImageNet top-1 after fine-tuning (Fig. 3)",
    data_sets=(1, 2),
)


def _scaling(facts: Facts, _: Sequence[str]) -> list[Variant]:
    sizes = {"small": (32, 3), "middle": (64, 4), "large": (96, 6)}
    return [
        Variant(name=f"{family}, {size}", line=family, model=model)
        for size, (dim, depth) in sizes.items()
        for family, model in _families(facts, dim=dim, depth=depth, mlp_dim=2 * dim).items()
    ]


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
        Point(
            line=row.family, name=f"{row.model}, {row.epochs} epochs", x=float(row.exaflops), value=row.imagenet / 100
        )
        for row in TABLE_6
    ),
    paper_label="ImageNet top-1 after fine-tuning",
)


def _resolution(facts: Facts, _: Sequence[str]) -> list[Variant]:
    full = choose_side(facts)
    sizes = {FULL: (full, full), GROWN: (full // 2, full), HALF: (full // 2, full // 2)}
    return [Variant(name=name, model=vit(facts, pool="mean"), image_sizes=sides) for name, sides in sizes.items()]


FULL, GROWN, HALF = "full size throughout", "half size, then full", "half size throughout"

RESOLUTION = Study(
    name="resolution",
    question="Train on small images and fine-tune on large ones?",
    paper="Fine-tuning at a higher resolution than pre-training is often better; positions are interpolated.",
    source="Sec. 3.2",
    task="enlarge",
    variants=_resolution,
    claims=(Claim(better=GROWN, worse=HALF), Claim(better=FULL, worse=GROWN)),
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


def _helps(variants: Sequence[Variant]) -> tuple[Claim, ...]:
    """Claim that every transfer is better than training from scratch on the same data set."""
    scratch = {variant.line: variant.name for variant in variants if variant.source is None}
    return tuple(
        Claim(better=variant.name, worse=scratch[variant.line]) for variant in variants if variant.source is not None
    )


TRANSFER = Study(
    name="transfer",
    question="Which data set helps which?",
    paper="Larger and more general data sets transfer better: JFT above ImageNet-21k above ImageNet.",
    source="Table 5",
    task="transfer",
    variants=_transfer,
    claims=_helps,
    points=tuple(
        Point(line=to, name=f"{source} to {to}", value=TABLE_5[data][task]["L/16"] / 100)
        for task, to in (("imagenet", "ImageNet"), ("cifar100", "CIFAR-100"))
        for data, source in (("imagenet1k", "ImageNet"), ("imagenet21k", "ImageNet-21k"), ("jft300m", "JFT-300M"))
    ),
    paper_label="after fine-tuning, ViT-L/16",
    data_sets=(2, 20),
)

SPEED_SIZES = (64, 128, 224, 384, 512)
SPEED_MODELS = ("R50x1", "R50x2", "R152x4", "B/32", "L/32", "B/16", "L/16", "H/14")


def _speed(_: Facts, __: Sequence[str]) -> list[Variant]:
    """Take sizes in whole patches: H/14 gets 56, 126, 224, 378 and 504 pixels."""
    patches = {name: int(name.partition("/")[2] or 1) for name in SPEED_MODELS}
    return [
        Variant(name=f"{name}, {side} px", line=name, x=float(side), model=configure(name, image_size=side))
        for name, patch in patches.items()
        for side in (size // patch * patch for size in SPEED_SIZES)
    ]


SPEED = Study(
    name="speed",
    question="How fast is each model on this machine, and how large a batch fits?",
    paper="On a TPUv3 core ViTs are as fast as ResNets of like cost, and fit larger batches.",
    source="App. D.5, Fig. 12",
    task="speed",
    measures=("images_per_second", "largest_batch"),
    variants=_speed,
    x_label="input size in pixels",
)
