"""Benchmarks as modules: they are programs beside the package, and import each other by name."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "benchmarks"


def program(name: str) -> ModuleType:
    """Import a benchmark."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)
