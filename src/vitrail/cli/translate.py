"""Sentences from below name settings; on the command line the same settings are flags.

    `epochs`           --epochs
    `to='vitrail'`     --to vitrail
    lossy=True         --lossy
    val_fraction is 2  --val-fraction is 2
    epochs is 0, ...   --epochs is 0, ...
    `data`             DATA, for what is given by its place
    `to_dict()`        --json

Only settings that the verb has are changed. A word without an underscore is also an English word, so that it counts
only in backquotes, before `=`, or as the first word of the sentence before "is" and a value.
"""

import re
from dataclasses import fields
from functools import partial
from typing import Any, get_type_hints

_PATH = r"\w/.'\"-"
"""What a word of a path, or of a quoted value, has beside it; a setting has none of it."""
_IS = r"(?= is (?:[-\d'\"(]|nan|inf|None|True|False))"
_VALUE = r"'(?P<quoted>[^']*)'|(?P<bare>[\w.%]*[\w%])"


def flags_of(arguments: type[Any]) -> dict[str, str]:
    """Return what is typed for each field of a verb's `Arguments`: a flag, or a place such as DATA."""
    hints = get_type_hints(arguments, include_extras=True)
    flags = {"to_dict()": "--json"}
    for field in fields(arguments):
        notes = getattr(hints[field.name], "__metadata__", ())
        name = next((note.name for note in notes if isinstance(getattr(note, "name", None), str)), field.name)
        placed = any(str(note).lower() == "positional" for note in notes)
        flags[field.name] = field.name.upper() if placed else f"--{name.replace('_', '-')}"
    return flags


def translate(sentence: str, arguments: type[Any]) -> str:
    """Write the settings of a sentence as the flags of a verb."""
    for name, flag in flags_of(arguments).items():
        word = re.escape(name)
        sentence = sentence.replace(f"`{name}`", flag)
        if not flag.startswith("--"):
            continue
        assignment = rf"(?<![{_PATH}])(?P<tick>`?){word}=(?:{_VALUE})(?P=tick)(?!\w)"
        sentence = re.sub(assignment, partial(_assigned, flag), sentence)
        if "_" in name and name.isidentifier():
            sentence = re.sub(rf"(?<![{_PATH}]){word}(?![\w/=('\"-]|\.\w)", flag, sentence)
        elif name.isidentifier():
            sentence = re.sub(rf"\A{word}{_IS}", flag, sentence)
    return sentence


def _assigned(flag: str, part: re.Match[str]) -> str:
    """Write an assignment; a switch that is on has no value, and one that is off no flag."""
    value = part["bare"] if part["quoted"] is None else part["quoted"]
    if part["quoted"] is None and value in ("False", "None"):
        return part[0]
    return flag if part["quoted"] is None and value == "True" else f"{flag} {value}"
