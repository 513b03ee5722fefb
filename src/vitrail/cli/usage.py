"""Read a verb's words into its `Arguments`, and raise one sentence for what is wrong with them.

`Arguments` is a dataclass: its types decide what a word may be, `Annotated[..., flag(...)]` how it is called. argparse
finds the flags; everything that can be wrong with a value is checked here, so that no message of argparse is ever read.
"""

import argparse
import types
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import get_annotations
from types import ModuleType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from vitrail.base.errors import VitrailError, did_you_mean
from vitrail.cli.flags import Flag, Positional
from vitrail.cli.say import show

_HELP = ("-h", "--help")
LARGEST = 2**63
"""The largest whole number that tensors can have."""


class UsageError(VitrailError):
    """Words that the verb does not understand."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of `Arguments` as the user types it."""

    dest: str
    """The field."""
    name: str
    """The flag, such as --image-size, or the name of a positional, such as DATA."""
    metavar: str
    """The placeholder of its value."""
    kind: type
    """The type of one value: str, int, float, or bool for a switch."""
    choices: tuple[str, ...] = ()
    """The only values, if they are few."""
    many: bool = False
    """Whether it takes any number of values."""
    positional: bool = False
    default: Any = MISSING
    default_text: str | None = None
    """The default as `--help` prints it."""

    def read(self, word: str) -> Any:
        """Return one value, or raise what is wrong with it."""
        if not word:
            raise UsageError(f"{self.name} is empty, but takes {self.metavar}.")
        if self.choices and word not in self.choices:
            raise UsageError(f"{self.name} is given {word!r}, but takes one of {', '.join(sorted(self.choices))}.")
        try:
            value = self.kind(word)
        except ValueError:
            raise UsageError(f"{self.name} is given {word!r}, but takes {self.metavar}.") from None
        if self.kind is int and abs(value) >= LARGEST:
            raise UsageError(f"{self.name} is given {word!r}, but takes a whole number below 2**63.")
        return value


def parse(verb: str, module: ModuleType, words: Sequence[str]) -> Any:
    """Return the verb's `Arguments`; for `--help`, print what it takes and leave."""
    declared = read_fields(module.Arguments)
    flagged, plain = _split(words)
    if set(_HELP) & set(flagged):
        from vitrail.cli.usage_help import help_text

        show(help_text(verb, module, declared))
        raise SystemExit(0)
    try:
        return module.Arguments(**_values(declared, flagged, plain))
    except UsageError as error:
        sentence, question, hint = str(error).partition(" Did you mean")
        raise UsageError(f"{sentence} `vitrail {verb} --help` lists what it takes.{question}{hint}") from None


def read_fields(arguments: type) -> list[Field]:
    """List what a verb takes: its own first, then what it shares with other verbs."""
    hints = get_type_hints(arguments, include_extras=True)
    owners = {name: rank for rank, kind in reversed([*enumerate(arguments.__mro__)]) for name in get_annotations(kind)}
    ordered = sorted(fields(arguments), key=lambda field: owners[field.name])
    return [_field(field.name, hints[field.name], field.default) for field in ordered]


def _field(dest: str, hint: Any, default: Any) -> Field:
    notes = getattr(hint, "__metadata__", ())  # of Annotated
    hint = get_args(hint)[0] if notes else hint
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (member for member in get_args(hint) if member is not types.NoneType)
    many = get_origin(hint) is tuple
    if many:
        hint = get_args(hint)[0]
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    kind = str if choices else hint
    if kind not in (str, int, float, bool):
        raise TypeError(f"the field {dest} is a {hint}, which no flag can be.")
    described = next((note for note in notes if isinstance(note, Flag)), None)
    metavar = described.metavar if described else "|".join(choices) or kind.__name__.upper()
    typed = (described.name if described else None) or dest.replace("_", "-")
    positional = Positional in notes
    return Field(
        dest=dest,
        name=metavar.split()[0].rpartition("=]")[2].strip("[]") if positional else f"--{typed}",
        metavar=metavar,
        kind=kind,
        choices=choices,
        many=many,
        positional=positional,
        default=default,
        default_text=described.default if described else None,
    )


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide words at the first `--`, behind which nothing is a flag; a negative number goes to the flag before it."""
    end = words.index("--") if "--" in words else len(words)
    flagged: list[str] = []
    for word in words[:end]:
        last = flagged[-1] if flagged else ""
        if word.startswith("-") and _is_number(word) and last.startswith("--") and "=" not in last:
            flagged[-1] += f"={word}"
        else:
            flagged.append(word)
    return flagged, list(words[end + 1 :])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _values(declared: Sequence[Field], flagged: Sequence[str], plain: Sequence[str]) -> dict[str, Any]:
    """Return the fields that have a value."""
    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, exit_on_error=False, argument_default=argparse.SUPPRESS
    )
    for field in declared:
        if field.kind is bool:
            parser.add_argument(field.name, dest=field.dest, action="store_true")
        elif field.many and not field.positional:
            parser.add_argument(field.name, dest=field.dest, nargs="+", action="extend")
        elif not field.positional:
            parser.add_argument(field.name, dest=field.dest)
    by_name = {field.name: field for field in declared if not field.positional}
    try:
        namespace, rest = parser.parse_known_args(list(flagged))
    except argparse.ArgumentError as error:  # a switch with a value, or a flag without one
        field = by_name[str(error.argument_name)]
        raise UsageError(
            f"{field.name} takes no value."
            if field.kind is bool
            else f"{field.name} takes {field.metavar}, but is given nothing."
        ) from None
    for word in rest:
        if word.startswith("-") and word != "-":
            name = word.partition("=")[0]
            raise UsageError(f"there is no flag {name}.{did_you_mean(name, by_name, most=1)}")
    values = vars(namespace)
    for field in by_name.values():
        if field.dest in values and field.kind is not bool:
            words = values[field.dest]
            values[field.dest] = tuple(map(field.read, words)) if field.many else field.read(words)
    return values | _placed([field for field in declared if field.positional], [*rest, *plain])


def _placed(declared: Iterable[Field], words: list[str]) -> dict[str, Any]:
    """Give the words without a flag to the positionals, in order."""
    values: dict[str, Any] = {}
    surplus = f", but is also given {words[-1]!r}." if words else ""
    for field in declared:
        if field.many:
            values[field.dest], words = tuple(map(field.read, words)), []
        elif words:
            values[field.dest], *words = field.read(words[0]), *words[1:]
        elif field.default is MISSING:
            raise UsageError(f"{field.name} is missing.")
    if words:
        names = " and ".join(field.name for field in declared) or "flags only"
        raise UsageError(f"it takes {names}{surplus}")
    return values
