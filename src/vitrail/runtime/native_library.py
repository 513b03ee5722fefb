"""The program of `runtime/native` as a library: compiled once for this processor, and stored in the user's cache.

The compiler of the machine makes it, as torch.compile's does; imports no torch.
"""

import ctypes
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError, VitrailError
from vitrail.base.files import cache_folder, write_whole
from vitrail.base.notes import Note, unheard
from vitrail.base.processor import describe_processor
from vitrail.runtime.digest import NO_DIGEST, check_digest, signed

SOURCES = Path(__file__).parent / "native"
PROGRAM = "encoder.cpp"
COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-pthread", f'-DVITRAIL_DIGEST="{NO_DIGEST}"')
COMPILER_COMMAND = "brew install gcc" if sys.platform == "darwin" else "apt-get install g++"
"""What installs a compiler."""
SECONDS = 300.0
"""How long the compiler may take; it takes four or five."""
_loaded: dict[str, ctypes.CDLL] = {}
_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_long
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "vitrail_int8": (_INT, []),
    "vitrail_make": (_POINTER, [_INT, _INT, _INT, _INT, ctypes.c_float, _INT, _INT]),
    "vitrail_free": (None, [_POINTER]),
    "vitrail_pack": (_INT, [_POINTER, _INT, *[_POINTER] * 12]),
    "vitrail_run": (_INT, [_POINTER, _POINTER, _INT, _INT, _INT, _INT]),
    "vitrail_embedding": (_POINTER, [_POINTER, _POINTER, _INT, _INT, _INT, _INT]),
    "vitrail_embedding_free": (None, [_POINTER]),
    "vitrail_embed": (_INT, [_POINTER, _POINTER, _POINTER, _LONG, _LONG, _LONG, _POINTER, _POINTER, _LONG, _INT]),
}


def find_compiler() -> list[str] | None:
    """Return the words that call the C++ compiler of this machine: CXX, or the first usual one; None without any."""
    named = shlex.split(os.environ.get("CXX", ""))
    for words in [named] if named else [[name] for name in COMPILERS]:
        if shutil.which(words[0]) is not None:
            return words
    return None


def load_library(note: Note = unheard) -> ctypes.CDLL:
    """Return the library, compiled if it is not stored yet, and loaded once in a process."""
    compiler = find_compiler()
    if compiler is None:
        raise ConfigError(
            "`engine=native` is compiled on this machine, which needs a C++ compiler; run "
            f"`{COMPILER_COMMAND}`, or name one in CXX, or choose another engine."
        )
    key = program_key(compiler)
    if key not in _loaded:
        _loaded[key] = _load(compiler, note)
    return _loaded[key]


def _load(compiler: list[str], note: Note) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="vitrail-") as folder:
        path = _stored(compiler, note)
        if path is None:  # nothing can be stored, but a library that was loaded needs no file
            path = Path(folder) / "native.so"
            path.write_bytes(compile_program(compiler))
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be loaded ({' '.join(str(error).split())[:200]}); delete it, or choose another engine."
            ) from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def compile_program(compiler: list[str]) -> bytes:
    """Return the library for this processor, with its own digest in it."""
    native = "-march=native" if platform.machine().lower() in ("x86_64", "amd64") else "-mcpu=native"
    with tempfile.TemporaryDirectory(prefix="vitrail-") as folder:
        out = Path(folder) / "native.so"
        words = [*compiler, *FLAGS, native, str(SOURCES / PROGRAM), "-o", str(out)]
        try:
            done = subprocess.run(  # noqa: S603  (the user's compiler, with our own program)
                words, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(
                f"{_failed(compiler)}: {error}; choose another compiler in CXX, or another engine."
            ) from None
        if done.returncode or not out.is_file():
            lines = [line for line in done.stderr.decode(errors="replace").splitlines() if "error" in line]
            reason = lines[0][:200] if lines else f"it ended with code {done.returncode}"
            raise ConfigError(f"{_failed(compiler)}: {reason}; choose another compiler in CXX, or another engine.")
        (content,) = signed([out.read_bytes()])
    return content


def _failed(compiler: list[str]) -> str:
    return f"{' '.join(compiler)} did not compile the engine native"


def _stored(compiler: list[str], note: Note) -> Path | None:
    """Return the stored library of this program, compiler and processor, made where there is none that is whole."""
    try:
        path = cache_folder() / "native" / f"{program_key(compiler)}.so"
    except RuntimeError:  # a user without a home
        return None
    with suppress(OSError, ValueError, VitrailError):
        if path.is_file() and check_digest([path]) is not None:
            return path
    note("the engine native is being compiled for this processor, once; that takes seconds.")
    content = compile_program(compiler)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except (OSError, VitrailError) as error:
        note(f"the engine native is used, but not stored: {error}")
        return None
    return path


def program_key(compiler: list[str]) -> str:
    """Return what names a library: all that its code depends on."""
    processor = describe_processor()
    facts = [*compiler, *FLAGS, platform.machine(), sys.platform]
    facts += [processor.get(name, "") for name in ("model name", "flags", "Features")]
    facts += [str(Path(shutil.which(word) or word).resolve()) for word in compiler[:1]]
    sources = [path.read_bytes() for path in sorted(SOURCES.iterdir()) if path.suffix in (".h", ".cpp")]
    return hashlib.sha256(json.dumps(facts).encode() + b"".join(sources)).hexdigest()[:32]
