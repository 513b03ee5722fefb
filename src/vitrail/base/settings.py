"""Dataclasses to plain dicts and back, strict on unknown keys: configs inside files."""

import dataclasses
import json
import math
import sys
import types
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from vitrail.base.errors import ConfigError, VitrailError, did_you_mean

Config = TypeVar("Config")


class Tagged:
    """A family of settings of several kinds: a `kind` beside them says which one is meant.

    A family is a direct subclass of this; its members name their kind: `class ViTConfig(ModelConfig, kind="vit")`.
    """

    kind: ClassVar[str] = ""
    members: ClassVar[dict[str, type[Any]]] = {}

    def __init_subclass__(cls, *, kind: str | None = None, **rest: Any) -> None:
        """Found a family, or add a member to one."""
        super().__init_subclass__(**rest)
        if Tagged in cls.__bases__:
            cls.members = {}
        elif kind is not None:
            cls.kind = kind
            cls.members[kind] = cls


def to_dict(config: Any) -> dict[str, Any]:
    """Turn a dataclass, and those inside it, into what JSON can hold."""
    return _tag(config) | {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def told(config: Any) -> dict[str, Any]:
    """Do the same without what has its default, so that new settings do not make old configs others."""
    found = _tag(config)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        usual = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if usual is dataclasses.MISSING or value != usual:
            found[field.name] = told(value) if dataclasses.is_dataclass(value) else _plain(value)
    return found


def from_dict(kind: type[Config], given: Any, *, where: str = "the settings") -> Config:
    """Make a dataclass from a plain dict, or say everything that is wrong with the dict at once.

    `where` names the place in the message: a file, or a part of one.
    """
    problems: list[str] = []
    kind = _member(kind, given, "", problems)
    made = {} if problems else _dataclass(kind, given, "", problems)
    if problems:
        raise ConfigError(f"{where} do not make a {kind.__name__}: {'; '.join(problems)}.")
    try:
        return kind(**made)
    except VitrailError as error:
        raise ConfigError(f"{where} do not make a {kind.__name__}: {error}") from None


def flatten(settings: Any, path: str = "") -> dict[str, Any]:
    """Name every plain setting by its path: schedule.peak."""
    if not isinstance(settings, Mapping):
        return {path: settings}
    named: dict[str, Any] = {}
    for name, value in settings.items():
        named |= flatten(value, f"{path}.{name}" if path else name)
    return named


def told_apart(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Tell, setting by setting, in what plain settings differ."""
    one, other = flatten(ours), flatten(theirs)
    return [
        f"{name} is {_short(one.get(name))} here and {_short(other.get(name))} there"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]


def check_finite(settings: Mapping[str, Any]) -> None:
    """Refuse plain settings with a number that is not finite."""
    for path, value in flatten(settings).items():
        numbers = value if isinstance(value, list) else [value]
        if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
            raise ConfigError(f"{path} is {_shown(value)}, but must be finite.")


def _tag(config: Any) -> dict[str, Any]:
    return {"kind": config.kind} if isinstance(config, Tagged) and config.kind else {}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _member(kind: Any, given: Any, path: str, problems: list[str]) -> Any:
    """Return the kind of a family that settings mean; a dataclass of its own is itself."""
    if not (isinstance(kind, type) and issubclass(kind, Tagged)) or not isinstance(given, Mapping):
        return kind
    named, known = given.get("kind", kind.kind), [kind.kind] if kind.kind else sorted(kind.members)
    if named not in known:
        shown = "missing" if not named else _shown(named)
        problems.append(f"{path}kind is {shown}, but must be one of {', '.join(known)}")
        return kind
    return kind.members[named]


def _dataclass(kind: type[Any], given: Any, path: str, problems: list[str]) -> dict[str, Any]:
    """Convert the values of one dataclass, noting every problem with its path."""
    if not isinstance(given, Mapping):
        problems.append(f"{path or 'they'} must be a table of settings, not {_shown(given)}")
        return {}
    if issubclass(kind, Tagged):
        given = {name: value for name, value in given.items() if name != "kind"}
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in sorted(set(map(str, given)) - fields.keys()):
        problems.append(
            f"{path}{name} is not a setting{did_you_mean(name, fields).rstrip('?').replace(' Did', '; did')}"
        )
    made = {}
    for name, field in fields.items():
        if name in given:
            made[name] = _value(hints[name], given[name], f"{path}{name}", problems)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f"{path}{name} is missing")
    return made


def _value(kind: Any, given: Any, path: str, problems: list[str]) -> Any:
    """Convert one value to the type of its field."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if given is None and type(None) in get_args(kind):
            return None
        kind = next(option for option in get_args(kind) if option is not type(None))
        return _value(kind, given, path, problems)
    if dataclasses.is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, Tagged)):
        inner: list[str] = []
        kind = _member(kind, given, f"{path}.", inner)
        made = {} if inner else _dataclass(kind, given, f"{path}.", inner)
        problems += inner
        try:
            return None if inner else kind(**made)
        except VitrailError as error:
            problems.append(f"{path}: {str(error).rstrip('.')}")
            return None
    if origin is list and isinstance(given, list):
        return [_value(get_args(kind)[0], item, f"{path}[{at}]", problems) for at, item in enumerate(given)]
    if origin is tuple and isinstance(given, list | tuple):
        kinds = get_args(kind)
        each = [kinds[0]] * len(given) if kinds[1:] == (Ellipsis,) else list(kinds)
        if len(each) == len(given):
            return tuple(
                _value(one, item, f"{path}[{at}]", problems)
                for at, (one, item) in enumerate(zip(each, given, strict=True))
            )
    elif origin in (dict, Mapping) and isinstance(given, Mapping):
        each = get_args(kind)[1]
        return {str(name): _value(each, item, f"{path}.{name}", problems) for name, item in given.items()}
    elif origin is Literal and given in get_args(kind):
        return given
    elif kind is float and isinstance(given, int | float) and not isinstance(given, bool):
        if abs(given) <= sys.float_info.max:
            return float(given)
        problems.append(f"{path} is {_shown(given)}, but must be finite")
        return None
    elif kind is Any or (
        isinstance(kind, type) and isinstance(given, kind) and (kind is bool or not isinstance(given, bool))
    ):
        return given
    problems.append(f"{path} must be {_described(kind)}, not {_shown(given)}")
    return None


def _described(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        many = "a list of" if kinds[1:] == (Ellipsis,) else f"a list of {len(kinds)} values, each"
        return f"{many} {_described(kinds[0])}"
    if get_origin(kind) in (dict, Mapping):
        return f"a table whose values are {_described(get_args(kind)[1])}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(kind, str(kind))


def _shown(value: Any) -> str:
    return _cut(repr(value))


def _short(value: Any) -> str:
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
