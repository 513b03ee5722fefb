"""Studies of training: optimiser (Table 7), recipe, masking (Sec. 4.6)."""

from collections.abc import Sequence
from typing import Any

from vitrail.runs.draft import Facts
from vitrail.studies.bases import resnet, vit
from vitrail.studies.study import Claim, Point, Study, Variant

ADAM: dict[str, Any] = {"optimizer.name": "adam", "optimizer.beta2": 0.999, "schedule.peak": 1e-3}
SGD: dict[str, Any] = {"optimizer.name": "sgd", "schedule.peak": 0.1, "optimizer.weight_decay": 0.0}
MUON: dict[str, Any] = {"optimizer.name": "muon"}
TABLE_7 = (("R50", "Adam", 89.33), ("R50", "SGD", 88.79), ("R152x2", "Adam", 94.01), ("R152x2", "SGD", 93.72))


def _optimiser(facts: Facts, _: Sequence[str]) -> list[Variant]:
    models = {"ResNet": resnet(facts), "ViT": vit(facts, pool="mean")}
    ways = {"Adam": ADAM, "SGD": SGD, "Muon": MUON}
    return [
        Variant(name=f"{kind}, {way}", line=kind, model=model, settings=settings)
        for kind, model in models.items()
        for way, settings in ways.items()
        if (kind, way) != ("ResNet", "Muon")  # a ResNet has no matrices for it
    ]


OPTIMISER = Study(
    name="optimiser",
    question="Adam or SGD for ResNets, and what of Vision Transformers?",
    paper="ResNets pre-trained with Adam transfer a little better than with SGD (89.33 and 88.79 on average for R50).",
    source="App. D.1, Table 7",
    variants=_optimiser,
    claims=(
        Claim(better="ResNet, Adam", worse="ResNet, SGD"),
        Claim(better="ViT, Adam", worse="ViT, SGD"),
        Claim(better="ViT, Muon", worse="ViT, Adam"),
    ),
    points=tuple(Point(line=model, name=f"{model}, {way}", value=value / 100) for model, way, value in TABLE_7),
    paper_label="average over five data sets after pre-training on JFT-300M",
)


def _recipe(facts: Facts, _: Sequence[str]) -> list[Variant]:
    off: dict[str, dict[str, Any]] = {
        "no flip": {"augmentation.flip": 0.0},
        "no crop": {"augmentation.crop": "none"},
        "no warm-up": {"schedule.warmup_steps": 0},
        "no weight decay": {"optimizer.weight_decay": 0.0},
        "no clipping": {"optimizer.clip_norm": None},
        "constant rate": {"schedule.shape": "constant"},
        "Adam for Muon": {"optimizer.name": "adam"},
    }
    whole = [Variant(name="the recipe"), *(Variant(name=name, settings=settings) for name, settings in off.items())]
    return [*whole, Variant(name="no convolutional root", model=vit(facts, pool="mean", dim=128, depth=6, mlp_dim=256))]


RECIPE = Study(
    name="recipe",
    question="Which part of the default recipe is worth having? One is taken away at a time.",
    paper="Not in the paper.",
    variants=_recipe,
    claims=tuple(
        Claim(better="the recipe", worse=name)
        for name in (
            "no flip",
            "no crop",
            "no warm-up",
            "no weight decay",
            "no clipping",
            "constant rate",
            "Adam for Muon",
            "no convolutional root",
        )
    ),
)


def _masking(facts: Facts, _: Sequence[str]) -> list[Variant]:
    model = vit(facts, pool="mean", num_classes=0)
    targets = ("mean-colour", "downsized", "patch")
    scratch = Variant(name="from scratch", model=vit(facts, pool="mean"))
    return [
        scratch,
        *(Variant(name=f"{target}, 50%", model=model, settings={"objective.target": target}) for target in targets),
        Variant(name="mean-colour, 15%", model=model, settings={"objective.rate": 0.15}),
    ]


MASKING = Study(
    name="masking",
    question="What does masked patch prediction give, by target and rate of corruption?",
    paper="79.9% on ImageNet, 2 points above scratch; all targets work, L2 slightly worse; so is 15% beside 50%.",
    source="Sec. 4.6, App. B.1.2",
    task="pretrain",
    variants=_masking,
    claims=(
        Claim(better="mean-colour, 50%", worse="from scratch"),
        Claim(better="mean-colour, 50%", worse="patch, 50%"),
        Claim(better="mean-colour, 50%", worse="mean-colour, 15%"),
    ),
    points=(
        Point(line="", name="mean-colour, 50%", value=0.799),
        Point(line="", name="from scratch", value=0.779),
    ),
    paper_label="ImageNet after fine-tuning, ViT-B/16",
)
