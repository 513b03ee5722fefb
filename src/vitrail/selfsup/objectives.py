"""Every objective without labels, by the name that `vitrail pretrain --objective` has for it.

To import a file adds its objective to the family of settings (`training/learner.py`); nothing else needs to know it.
"""

from vitrail.selfsup.dino import DinoConfig
from vitrail.selfsup.mae import MAEConfig
from vitrail.selfsup.masked_patch import MaskedPatchConfig
from vitrail.selfsup.moco import MocoConfig
from vitrail.selfsup.objective import SelfSupervisedConfig

OBJECTIVES: dict[str, type[SelfSupervisedConfig]] = {
    config.kind: config for config in (MaskedPatchConfig, MAEConfig, DinoConfig, MocoConfig)
}
"""The kinds, in the order in which help texts list them."""
