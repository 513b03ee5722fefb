"""Stands in for parts of mmpretrain that need libraries of other years, so that its models import."""

import sys
import types

for name in ("mmpretrain.apis", "mmpretrain.models.multimodal"):
    module = types.ModuleType(name)
    module.__all__ = []
    sys.modules[name] = module
