"""The plain values that a pickle is read as, and the table of every name that may stand in one.

A name stands for a function of ours that makes numbers, text, lists, dicts, or records of where a tensor lies. Nothing
is imported by its name.
"""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

MODULES = (
    *("addict", "datetime", "easydict", "fvcore", "lightning", "lightning_fabric", "ml_collections", "mmcv"),
    *("mmengine", "omegaconf", "pytorch_lightning", "typing", "uuid", "yacs"),
)
"""Whose classes hold settings of a training run; their values become dicts."""


class Name(NamedTuple):
    """A name of the program, `module.attribute`."""

    text: str


class Storage(NamedTuple):
    """A block of numbers that lies outside the program."""

    kind: str
    """The type that the program gives it: torch.FloatStorage, ..."""
    key: str


class Stored(NamedTuple):
    """Where the numbers of a tensor lie."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str | None
    """The type, where the storage has none."""


class Record(dict[Any, Any]):
    """The attributes of an object whose class is known to hold data only."""


@dataclass(frozen=True)
class Opaque:
    """A value that is not read further: an array, a sparse tensor."""

    kind: str


def put(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Set an item whose key is a number, text or a name; others would cost any time to hash, and are left out."""
    if key is None or isinstance(key, str | int | bytes) or (isinstance(key, float) and not math.isnan(key)):
        table[key] = value
    elif isinstance(key, Name):
        table[key.text] = value


def _tensor(arguments: Sequence[Any]) -> Any:
    storage, offset, shape, stride = arguments[:4]
    counts = [offset, *shape, *stride]
    if not isinstance(storage, Storage) or not all(type(count) is int and 0 <= count < 2**63 for count in counts):
        return Opaque("a tensor that is not stored")
    dtype = arguments[6].text if len(arguments) > 6 and isinstance(arguments[6], Name) else None
    return Stored(storage, offset, tuple(shape), tuple(stride), dtype)


def _pairs(arguments: Sequence[Any]) -> dict[Any, Any]:
    pairs = arguments[0] if arguments else ()
    table: dict[Any, Any] = {}
    for key, value in pairs.items() if isinstance(pairs, dict) else pairs if isinstance(pairs, list | tuple) else ():
        put(table, key, value)
    return table


def _number(arguments: Sequence[Any]) -> Any:
    """Return a scalar of NumPy as a number; types other than numbers stay closed."""
    dtype, data = arguments
    code = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "u8": "Q", "u4": "I", "b1": "?"}.get(
        dtype.kind if isinstance(dtype, Opaque) else ""
    )
    data = data.encode("latin-1") if isinstance(data, str) else data
    return Opaque("a scalar") if code is None or not isinstance(data, bytes) else struct.unpack(f"<{code}", data)[0]


def _encode(arguments: Sequence[Any]) -> bytes:
    text, *_ = arguments
    return text.encode("latin-1") if isinstance(text, str) else b""


def _text(arguments: Sequence[Any]) -> str:
    return "/".join(part for part in arguments if isinstance(part, str))


def _values(arguments: Sequence[Any]) -> list[Any]:
    return list(arguments[0]) if arguments and isinstance(arguments[0], list | tuple) else []


def _opaque(kind: str) -> Callable[[Sequence[Any]], Opaque]:
    return lambda _: Opaque(kind)


# A name -> what a call of it gives.
CALLS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor,
    "torch._utils._rebuild_parameter": lambda arguments: arguments[0],
    "torch._utils._rebuild_parameter_with_state": lambda arguments: arguments[0],
    "torch._tensor._rebuild_from_type_v2": lambda arguments: CALLS[arguments[0].text](arguments[2]),
    "torch._utils._rebuild_sparse_tensor": _opaque("a sparse tensor"),
    "torch._utils._rebuild_qtensor": _opaque("a quantised tensor"),
    "torch._utils._rebuild_meta_tensor_no_storage": _opaque("a tensor that is not stored"),
    "torch.serialization._get_layout": _opaque("a layout"),
    "torch.Size": lambda arguments: tuple(_values(arguments)),
    "torch.device": lambda arguments: str(arguments[0]) if isinstance(arguments[0], str) else "",
    "collections.OrderedDict": _pairs,
    "collections.Counter": _pairs,
    "collections.defaultdict": lambda _: {},
    "argparse.Namespace": lambda _: Record(),
    "types.SimpleNamespace": lambda _: Record(),
    "pathlib.PosixPath": _text,
    "pathlib.WindowsPath": _text,
    "pathlib.PurePosixPath": _text,
    "numpy.dtype": lambda arguments: Opaque(arguments[0] if isinstance(arguments[0], str) else ""),
    "numpy.core.multiarray.scalar": _number,
    "numpy._core.multiarray.scalar": _number,
    "numpy.core.multiarray._reconstruct": _opaque("an array"),
    "numpy._core.multiarray._reconstruct": _opaque("an array"),
    "_codecs.encode": _encode,
    **dict.fromkeys(("builtins.set", "__builtin__.set", "builtins.frozenset", "__builtin__.frozenset"), _values),
}
_CLASSES = frozenset({"numpy.ndarray", "torch.nn.parameter.Parameter", "torch.Tensor", "copyreg._reconstructor"})
_BUILTINS = frozenset({"bool", "bytes", "dict", "float", "int", "list", "object", "str", "tuple"})


_TYPES = frozenset(
    {
        *("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"),
        *("int64", "int32", "int16", "int8", "uint8", "bool", "strided"),
    }
)


def is_known(name: str) -> bool:
    """Return whether a name may stand in a program."""
    module, _, attribute = name.rpartition(".")
    if name in CALLS or name in _CLASSES or name.partition(".")[0] in MODULES:
        return True
    if module in ("builtins", "__builtin__"):
        return attribute in _BUILTINS
    storage = module in ("torch", "torch.storage") and attribute.endswith("Storage")
    return storage or (module == "torch" and attribute in _TYPES)
