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
    """A family of settings of several kinds; the field `kind` names the one that is meant.

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
    """Turn a dataclass, and those inside it, into plain values for JSON."""
    return _tag(config) | {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def without_defaults(config: Any) -> dict[str, Any]:
    """Do the same for fields that differ from their defaults: a new setting leaves the dict of old configs alone."""
    settings = _tag(config)
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        usual = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if usual is dataclasses.MISSING or value != usual:
            settings[field.name] = without_defaults(value) if dataclasses.is_dataclass(value) else _plain(value)
    return settings


def from_dict(kind: type[Config], settings: Any, *, where: str = "the settings") -> Config:
    """Make a dataclass from a plain dict, or raise one error with everything that is wrong.

    `where` names the origin of the settings in the message: a file, or a part of one.
    """
    problems: list[str] = []
    kind = _member(kind, settings, "", problems)
    fields = {} if problems else _dataclass(kind, settings, "", problems)
    if problems:
        raise ConfigError(f"{where} do not make a {kind.__name__}: {'; '.join(problems)}.")
    try:
        return kind(**fields)
    except VitrailError as error:
        raise ConfigError(f"{where} do not make a {kind.__name__}: {error}") from None


def flatten(settings: Any, path: str = "") -> dict[str, Any]:
    """Name every plain setting by its path: schedule.peak."""
    if not isinstance(settings, Mapping):
        return {path: settings}
    leaves: dict[str, Any] = {}
    for name, value in settings.items():
        leaves |= flatten(value, f"{path}.{name}" if path else name)
    return leaves


def setting_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Describe each difference between plain settings."""
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
            raise ConfigError(f"{path} is {_excerpt(value)}, but must be finite.")


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


def _member(kind: Any, settings: Any, path: str, problems: list[str]) -> Any:
    """Return the member of a family that `settings` name; a dataclass outside of families is itself."""
    if not (isinstance(kind, type) and issubclass(kind, Tagged)) or not isinstance(settings, Mapping):
        return kind
    name, names = settings.get("kind", kind.kind), [kind.kind] if kind.kind else sorted(kind.members)
    if name not in names:
        text = "missing" if not name else _excerpt(name)
        problems.append(f"{path}kind is {text}, but must be one of {', '.join(names)}")
        return kind
    return kind.members[name]


def _dataclass(kind: type[Any], settings: Any, path: str, problems: list[str]) -> dict[str, Any]:
    """Convert the values of one dataclass, noting every problem with its path."""
    if not isinstance(settings, Mapping):
        problems.append(f"{path or 'they'} must be a table of settings, not {_excerpt(settings)}")
        return {}
    if issubclass(kind, Tagged):
        settings = {name: value for name, value in settings.items() if name != "kind"}
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in sorted(set(map(str, settings)) - fields.keys()):
        problems.append(
            f"{path}{name} is not a setting{did_you_mean(name, fields).rstrip('?').replace(' Did', '; did')}"
        )
    values = {}
    for name, field in fields.items():
        if name in settings:
            values[name] = _value(hints[name], settings[name], f"{path}{name}", problems)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f"{path}{name} is missing")
    return values


def _value(kind: Any, value: Any, path: str, problems: list[str]) -> Any:
    """Convert one value to the type of its field."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        kind = next(option for option in get_args(kind) if option is not type(None))
        return _value(kind, value, path, problems)
    if dataclasses.is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, Tagged)):
        inner: list[str] = []
        if (
            isinstance(value, str) and isinstance(kind, type) and issubclass(kind, Tagged)
        ):  # a kind alone stands for its usual settings
            value = {"kind": value}
        kind = _member(kind, value, f"{path}.", inner)
        fields = {} if inner else _dataclass(kind, value, f"{path}.", inner)
        problems += inner
        try:
            return None if inner else kind(**fields)
        except VitrailError as error:
            problems.append(f"{path}: {str(error).rstrip('.')}")
            return None
    if origin is list and isinstance(value, list):
        return [_value(get_args(kind)[0], item, f"{path}[{at}]", problems) for at, item in enumerate(value)]
    if origin is tuple and isinstance(value, list | tuple):
        kinds = get_args(kind)
        each = [kinds[0]] * len(value) if kinds[1:] == (Ellipsis,) else list(kinds)
        if len(each) == len(value):
            return tuple(
                _value(one, item, f"{path}[{at}]", problems)
                for at, (one, item) in enumerate(zip(each, value, strict=True))
            )
    elif origin in (dict, Mapping) and isinstance(value, Mapping):
        each = get_args(kind)[1]
        return {str(name): _value(each, item, f"{path}.{name}", problems) for name, item in value.items()}
    elif origin is Literal and value in get_args(kind):
        return value
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) <= sys.float_info.max:
            return float(value)
        problems.append(f"{path} is {_excerpt(value)}, but must be finite")
        return None
    elif kind is Any or (
        isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    ):
        return value
    problems.append(f"{path} must be {_described(kind)}, not {_excerpt(value)}")
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


def _excerpt(value: Any) -> str:
    return _cut(repr(value))


def _short(value: Any) -> str:
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
