"""Optional dependencies, imported by name; the error for a missing one has the command that installs it."""

import sys
from importlib import import_module
from typing import Any

from vitrail.base.errors import ConfigError

_REPORTING = ("openvino_telemetry",)
"""Packages that report their use over the network as soon as they are imported; those that import them do without."""


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Import an optional module, or raise an error that names what needs it and how to install it."""
    for package in _REPORTING:
        sys.modules.setdefault(package, None)  # type: ignore[arg-type]  # as if it were not installed
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # the module is installed but one of its own dependencies is not: that message is clearer
        raise ConfigError(
            f"{purpose} needs {package}, which is not installed; run `pip install 'vitrail[{extra}]'`."
        ) from None
