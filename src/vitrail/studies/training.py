"""Studies of training: optimiser (Table 7), recipe, masking (Sec. 4.6)."""

from collections.abc import Sequence
from typing import Any

from vitrail.runs.draft import Facts
from vitrail.studies.bases import resnet, vit
from vitrail.studies.study import Claim, Point, Study, Variant, crossed

ADAM: dict[str, Any] = {"optimizer.name": "adam", "optimizer.beta2": 0.999, "schedule.peak": 1e-3}
SGD: dict[str, Any] = {"optimizer.name": "sgd", "schedule.peak": 0.1, "optimizer.weight_decay": 0.0}
MUON: dict[str, Any] = {"optimizer.name": "muon"}
TABLE_7 = (("R50", "Adam", 89.33), ("R50", "SGD", 88.79), ("R152x2", "Adam", 94.01), ("R152x2", "SGD", 93.72))


def _optimiser(facts: Facts, _: Sequence[str]) -> list[Variant]:
    models = {"ResNet": resnet(facts), "ViT": vit(facts, pool="mean")}
    ways = {"Adam": {"settings": ADAM}, "SGD": {"settings": SGD}, "Muon": {"settings": MUON}}
    return [one for one in crossed(models, ways) if one.name != "ResNet, Muon"]  # a ResNet has no matrices for it


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
    paper_label="mean of five data sets, after JFT-300M",
)


OFF: dict[str, dict[str, Any]] = {
    "no flip": {"augmentation.flip": 0.0},
    "no crop": {"augmentation.crop": "none"},
    "no warm-up": {"schedule.warmup_steps": 0},
    "no weight decay": {"optimizer.weight_decay": 0.0},
    "no clipping": {"optimizer.clip_norm": None},
    "constant rate": {"schedule.shape": "constant"},
    "Adam for Muon": {"optimizer.name": "adam"},
}
WHOLE, ROOTLESS = "the recipe", "no convolutional root"


def _recipe(facts: Facts, _: Sequence[str]) -> list[Variant]:
    rootless = Variant(name=ROOTLESS, model=vit(facts, pool="mean", dim=128, depth=6, mlp_dim=256))
    return [Variant(name=WHOLE), *(Variant(name=name, settings=settings) for name, settings in OFF.items()), rootless]


RECIPE = Study(
    name="recipe",
    question="Which part of the default recipe is worth having? One is taken away at a time.",
    paper="Not in the paper.",
    variants=_recipe,
    claims=tuple(Claim(better=WHOLE, worse=name) for name in (*OFF, ROOTLESS)),
)

SCRATCH, FIFTY, FIFTEEN, TENTH, NONE = (
    "from scratch",
    "mean colour, 50%",
    "mean colour, 15%",
    "a tenth of the steps",
    "no pre-training",
)


def _masking(facts: Facts, _: Sequence[str]) -> list[Variant]:
    """Vary target, rate and steps; without pre-training (one step of it) the same fine-tuning starts at random."""
    model = vit(facts, pool="mean", num_classes=0)
    targets = {"4x4 colours, 50%": "downsized", "whole patch, 50%": "patch"}
    return [
        Variant(name=SCRATCH, model=vit(facts, pool="mean")),
        Variant(name=NONE, model=model, first=0.0),
        Variant(name=TENTH, model=model, first=0.05),
        Variant(name=FIFTY, model=model),
        *(Variant(name=name, model=model, settings={"objective.target": target}) for name, target in targets.items()),
        Variant(name=FIFTEEN, model=model, settings={"objective.rate": 0.15}),
    ]


MASKING = Study(
    name="masking",
    question="What does masked patch prediction give, by target, rate of corruption, and steps?",
    paper="79.9% on ImageNet, 2 points above scratch; all targets work, L2 slightly worse; so is 15% beside 50%; "
    "little is gained after a tenth of the steps.",
    source="Sec. 4.6, App. B.1.2",
    task="pretrain",
    variants=_masking,
    claims=(
        Claim(better=FIFTY, worse=NONE),
        Claim(better=FIFTY, worse=TENTH),
        Claim(better=FIFTY, worse="whole patch, 50%"),
        Claim(better=FIFTY, worse=FIFTEEN),
        Claim(better=FIFTY, worse=SCRATCH),
    ),
    points=(Point(line="", name=SCRATCH, value=0.779), Point(line="", name=FIFTY, value=0.799)),
    paper_label="ImageNet after fine-tuning, ViT-B/16",
)
