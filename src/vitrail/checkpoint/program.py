"""A pickle read as plain data: its operations are followed here, and nothing that it names is imported or called.

A pickle is a program for a small machine: push a number, push a name, call the name below with these arguments. This
machine has the same stack, but a call only looks the name up in a table of our own functions (`plain.py`), which make
plain values. A name outside the table ends the reading.

The work is bounded by the length of the program: nothing is copied, nothing is hashed but numbers and text, and no
value is walked through.
"""

import io
import pickletools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vitrail.checkpoint.plain import CALLS, MODULES, Name, Opaque, Record, Storage, is_known, put

_GETATTR = ("builtins.getattr", "__builtin__.getattr")
"""Stands in records of mmengine for a method of a class that holds data; nothing else may follow it."""


class NameRefused(Exception):  # noqa: N818 - the name of what happened
    """A name that is not in the table."""


def run(program: bytes, start: int = 0) -> tuple[Any, int, dict[str, str]]:
    """Follow a program from a byte of it on; return its value, the byte after its end, and the kind of each storage."""
    machine = Machine()
    stream = io.BytesIO(program)
    stream.seek(start)
    for operation, argument, _ in pickletools.genops(stream):
        if operation.name == "STOP":
            return machine.take(1)[0], stream.tell(), machine.storages
        machine.step(operation.name, argument)
    raise ValueError("the program has no end")


def names_of(program: bytes) -> list[str]:
    """List the names of a program that are not in the table, as far as it can be read."""
    names: dict[str, None] = {}
    texts: list[str] = []
    stream = io.BytesIO(program)
    try:
        while stream.tell() < len(program):
            for operation, argument, _ in pickletools.genops(stream):
                if operation.name in ("GLOBAL", "INST"):
                    names[str(argument).replace(" ", ".")] = None
                elif operation.name == "STACK_GLOBAL":
                    names[".".join(texts[-2:])] = None
                elif isinstance(argument, str):
                    texts = [*texts[-1:], argument]
    except Exception:  # noqa: S110 - it may break off anywhere; what was read before is enough
        pass
    return [name for name in names if not is_known(name)]


class Machine:
    """The stack and the memo of a program."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.storages: dict[str, str] = {}

    def step(self, name: str, argument: Any) -> None:
        """Follow one operation."""
        if name in _PUSHED:
            self.stack.append(_PUSHED[name]() if name not in _LITERALS else argument)
        elif name in _STEPS:
            _STEPS[name](self, argument)
        elif name not in ("PROTO", "FRAME"):
            raise ValueError(f"an operation {name} is not read")

    def since_mark(self) -> list[Any]:
        """Take everything above the last mark, and that mark."""
        at = self.marks.pop()
        values = self.stack[at:]
        del self.stack[at:]
        return values

    def take(self, count: int) -> tuple[Any, ...]:
        """Take the last values."""
        at = len(self.stack) - count
        if at < (self.marks[-1] if self.marks else 0):
            raise IndexError("the stack is empty")
        values = tuple(self.stack[at:])
        del self.stack[at:]
        return values

    def name(self, text: str) -> None:
        """Push a name, if it is in the table."""
        if text not in _GETATTR and not is_known(text):
            raise NameRefused(text)
        self.stack.append(Name(text))

    def call(self, function: Any, arguments: Any) -> None:
        """Push what our function of that name makes of the arguments."""
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise TypeError("what is called is not a name")
        if function.text in _GETATTR:
            self.stack.append(_method(arguments))
            return
        make = CALLS.get(function.text)
        self.stack.append(Record() if make is None else make(arguments))

    def build(self, state: Any) -> None:
        """Give a record its attributes; other values have none that matter."""
        target = self.stack[-1]
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(target, Record) and isinstance(part, dict):
                for key, value in part.items():
                    put(target, key, value)

    def put_items(self, values: Sequence[Any]) -> None:
        """Add keys and values, which alternate, to the dict below."""
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise TypeError("items are added to what is not a dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            put(target, key, value)

    def append_all(self, values: Sequence[Any]) -> None:
        """Append values to the list below; objects keep no items."""
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(values)

    def push_storage(self, identity: Any) -> None:
        """Push the block of numbers that a persistent name stands for."""
        word, kind, key, *_ = identity
        view = identity[5] if len(identity) > 5 else None
        if word != "storage" or not isinstance(kind, Name) or view is not None:
            raise ValueError("a stored value is not a block of numbers")
        storage = Storage(kind.text, str(key) if isinstance(key, str | int) else "")
        self.storages[storage.key] = storage.kind
        self.stack.append(storage)


def _method(arguments: tuple[Any, ...]) -> Opaque:
    """Return a method of a class that holds settings, which is never called; refuse any other attribute."""
    owner = arguments[0] if len(arguments) == 2 else None
    if not isinstance(owner, Name) or owner.text.partition(".")[0] not in MODULES:
        raise NameRefused(_GETATTR[0])
    return Opaque("a method")


def _push(make: Callable[[list[Any]], Any]) -> Callable[[Machine, Any], None]:
    return lambda machine, _: machine.stack.append(make(machine.since_mark()))


def _recall(machine: Machine, place: Any) -> None:
    machine.stack.append(machine.memo[int(place)])


def _remember(machine: Machine, place: Any) -> None:
    machine.memo[int(place)] = machine.stack[-1]


def _dict(values: list[Any]) -> dict[Any, Any]:
    table: dict[Any, Any] = {}
    for key, value in zip(values[::2], values[1::2], strict=True):
        put(table, key, value)
    return table


_LITERALS = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
_PUSHED: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_SET": list,
    "EMPTY_TUPLE": tuple,
    **dict.fromkeys(_LITERALS, lambda: None),
}
_STEPS: Mapping[str, Callable[[Machine, Any], Any]] = {
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": lambda machine, _: machine.take(1),
    "POP_MARK": lambda machine, _: machine.since_mark(),
    "DUP": lambda machine, _: machine.stack.append(machine.stack[-1]),
    "TUPLE": _push(tuple),
    "LIST": _push(list),
    "FROZENSET": _push(list),
    "DICT": _push(_dict),
    "TUPLE1": lambda machine, _: machine.stack.append(machine.take(1)),
    "TUPLE2": lambda machine, _: machine.stack.append(machine.take(2)),
    "TUPLE3": lambda machine, _: machine.stack.append(machine.take(3)),
    "APPEND": lambda machine, _: machine.append_all(machine.take(1)),
    "APPENDS": lambda machine, _: machine.append_all(machine.since_mark()),
    "ADDITEMS": lambda machine, _: machine.append_all(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.put_items(machine.take(2)),
    "SETITEMS": lambda machine, _: machine.put_items(machine.since_mark()),
    "GLOBAL": lambda machine, text: machine.name(text.replace(" ", ".")),
    "STACK_GLOBAL": lambda machine, _: machine.name(".".join(machine.take(2))),
    "REDUCE": lambda machine, _: machine.call(*machine.take(2)),
    "NEWOBJ": lambda machine, _: machine.call(*machine.take(2)),
    "NEWOBJ_EX": lambda machine, _: machine.call(*machine.take(3)[:2]),
    "BUILD": lambda machine, _: machine.build(*machine.take(1)),
    "BINPERSID": lambda machine, _: machine.push_storage(*machine.take(1)),
    "MEMOIZE": lambda machine, _: _remember(machine, len(machine.memo)),
    "PUT": _remember,
    "BINPUT": _remember,
    "LONG_BINPUT": _remember,
    "GET": _recall,
    "BINGET": _recall,
    "LONG_BINGET": _recall,
}
