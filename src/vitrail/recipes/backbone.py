"""The run that makes the backbone of the package: `vitrail train PHOTOS --recipe backbone`.

A hybrid as the rule of `train` makes it, a little wider, learns the classes of tens of thousands of photos, from small
images to 64 pixels. Muon, a tenth of the steps to warm up, then linearly to 0; crops of 35 to 100% of the area; the
average of the last weights is kept. docs/backbone.md has the command of the file that is shipped, its cost, and what
it reaches; `tools/pack_backbone.py` makes that file from a run.
"""

from vitrail.data.augment.settings import Augmentation
from vitrail.data.preprocessing import preset
from vitrail.model.backbone import BackboneConfig
from vitrail.model.config import ViTConfig
from vitrail.runs.choose import SMALL_MUON
from vitrail.runs.config import Stage
from vitrail.runs.draft import Draft, Facts
from vitrail.training.schedules import Schedule

NAME = "backbone"
SIDE = 64
DIM = 160
BATCH = 128
EPOCHS = 16
STAGES = (Stage(until=0.3, image_size=(32, 32)), Stage(until=0.6, image_size=(48, 48)))


def backbone(facts: Facts) -> Draft:
    """Return the run on photos with these facts."""
    steps = max(round(EPOCHS * facts.images / BATCH), 1)
    return Draft(
        model=ViTConfig(
            backbone=BackboneConfig(blocks=(), width=32, norm_groups=16),
            dim=DIM,
            depth=6,
            num_heads=DIM // 32,
            mlp_dim=2 * DIM,
            patch_size=(2, 2),  # cells of 4 pixels
            image_size=(SIDE, SIDE),
            channels=facts.channels,
            num_classes=facts.classes,
            pool="mean",
            gelu="erf",
        ),
        preprocessing=preset("huggingface", image_size=(SIDE, SIDE), channels=facts.channels),
        augmentation=Augmentation(area=(0.35, 1.0), antialias=True),
        optimizer=SMALL_MUON,
        schedule=Schedule(shape="linear", peak=2e-3, warmup_steps=steps // 10),
        batch=BATCH,
        steps=steps,
        averaging=0.998,
        stages=STAGES,
    )
