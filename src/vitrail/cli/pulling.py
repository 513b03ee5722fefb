"""--pull: a published model that a command names is brought onto this machine first."""

from dataclasses import fields
from typing import Any, get_type_hints

from vitrail.cli.flags import Weights


def pull_first(arguments: Any) -> None:
    """With --pull, get the models that the command names, unless they are here; without it, use no network."""
    if not getattr(arguments, "pull", False):
        return
    from vitrail.cli.progress import progress
    from vitrail.cli.say import say
    from vitrail.published.source import is_path
    from vitrail.verbs.pull import pull

    hints = get_type_hints(type(arguments), include_extras=True)
    for field in fields(arguments):
        name = getattr(arguments, field.name)
        if name is not None and Weights in getattr(hints[field.name], "__metadata__", ()) and not is_path(name):
            pull(name, progress=progress, note=say)
