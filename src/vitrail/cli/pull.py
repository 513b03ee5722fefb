"""Get a published model onto this machine; afterwards its name stands for its path in every command.

NAME is one of `vitrail models --published`, hf:OWNER/NAME or hf:OWNER/NAME@REVISION for a repository of Hugging Face,
or an https address. Only this command, and --pull beside a model's name, use the network. An interrupted download is
resumed, sizes and SHA-256 are checked, and later downloads must have the digests of the first. See
docs/published.md.

Example: vitrail pull dinov2-S/14
Example: vitrail pull --list
"""

from dataclasses import dataclass
from typing import Annotated

import vitrail
from vitrail.base.errors import ConfigError
from vitrail.base.readable import in_bytes
from vitrail.cli.progress import progress
from vitrail.cli.report import Positional, Switch, flag, print_json
from vitrail.cli.say import say, show
from vitrail.cli.tables import print_tables


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Flags of `vitrail pull`."""

    names: Annotated[tuple[str, ...], Positional, flag("[NAME ...]", "none; needed unless --list is given")] = ()
    """Models to get, such as dinov2-S/14, hf:facebook/dinov2-small or https://..."""
    renew: Switch = False
    """Download again, and hold the digests of what comes: for a model whose publisher has changed it."""
    list: Switch = False
    """List the models on this machine, and downloads that were stopped."""
    remove: Switch = False
    """Remove the named models from the cache; their digests are kept."""
    json: Switch = False
    """Write JSON to stdout."""


def run(arguments: Arguments) -> None:
    """Get, list or remove."""
    if arguments.list + arguments.remove + arguments.renew > 1:
        raise ConfigError("--list, --remove and --renew are three different things; give one of them.")
    if arguments.list:
        _list(arguments)
        return
    if not arguments.names:
        raise ConfigError("no model is named; `vitrail models --published` lists what there is.")
    if arguments.remove:
        freed = {name: vitrail.remove_pulled(name, note=say) for name in arguments.names}
        if arguments.json:
            print_json({"removed": freed})
            return
        for name, size in freed.items():
            show(f"{name}: removed, {in_bytes(size)} freed")
        return
    models = [
        vitrail.pull(name, renew=arguments.renew, progress=progress, note=say)
        for name in dict.fromkeys(arguments.names)
    ]
    if arguments.json:
        print_json({"models": [model.to_dict() for model in models]})
        return
    for model in models:
        for sentence in model.sentences():
            show(sentence)


def _list(arguments: Arguments) -> None:
    if arguments.names:
        raise ConfigError("--list lists every model; leave the names out.")
    pulled = vitrail.list_pulled()
    if arguments.json:
        print_json(pulled.to_dict())
        return
    print_tables(pulled.tables(), arguments)
