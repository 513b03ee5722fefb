"""Settings by the names that they have on the command line.

Below the command line, sentences name settings as Python does, in backticks: `image_size`. Here they become flags.
"""

import re

OTHERWISE = {
    "data": "DATA",
    "start": "--from",
    "settings": "--set",
    "compiled": "--compile",
    "resamples": "--bootstrap",
}
"""Settings whose flags have names of their own."""
_NAME = re.compile(r"`(?P<name>[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(?:=(?P<value>[^`]*))?`")


def flag_of(name: str) -> str:
    """Return the flag of a setting, or of its path in config.json; a path without a flag stays as it is."""
    if "." in name:
        from vitrail.verbs.request import EXECUTION, PATHS  # imports torch, and paths are rare

        keywords = [keyword for keyword, path in (PATHS | EXECUTION).items() if path == name]
        return flag_of(keywords[0]) if keywords else name
    return OTHERWISE.get(name) or f"--{name.replace('_', '-')}"


def in_flags(sentence: str) -> str:
    """Write the flags of settings in place of their names: `image_size` and `split=train` become flags."""

    def flag(match: re.Match[str]) -> str:
        value = match["value"]
        return flag_of(match["name"]) + (f" {value}" if value not in (None, "True") else "")

    return _NAME.sub(flag, sentence)
