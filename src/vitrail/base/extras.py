"""Optional dependencies, imported by name; the error for a missing one has the command that installs it."""

from importlib import import_module
from typing import Any

from vitrail.base.errors import ConfigError


def require(module: str, *, extra: str, purpose: str) -> Any:
    """Import an optional module, or raise an error that names what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # the module is installed but one of its own dependencies is not: that message is clearer
        raise ConfigError(
            f"{purpose} needs {package}, which is not installed; run `pip install 'vitrail[{extra}]'`."
        ) from None
