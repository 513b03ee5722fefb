"""Files that are not weights: recognised by their first bytes, each with a sentence about what to do."""

from pathlib import Path

from vitrail.base.errors import CheckpointError

_TEXTS = {
    (b"<!doctype", b"<html", b"<head"): "a web page, not weights: the download ended on a page for people; get the "
    "file by its own link",
    (b"version https://git-lfs",): "a Git LFS pointer, not weights; fetch the file with `git lfs pull`",
    (b"<?xml",): "XML, as of an OpenVINO model, and not weights; give the model that it was made from",
}
_STARTS = {
    b"\x89HDF\r\n\x1a\n": "an HDF5 file, as Keras and TensorFlow write (.h5); load it there and save a PyTorch state "
    "dict or an .npz",
    b"GGUF": "a GGUF file, whose weights are quantised for llama.cpp; give the model that it was made from",
    b"\x93NUMPY": "a single NumPy array (.npy), not a model; give the .npz with all of them",
    b"\x1f\x8b": "compressed by gzip; unpack it first",
    b"\xfd7zXZ\x00": "compressed by xz; unpack it first",
    b"BZh": "compressed by bzip2; unpack it first",
    b"\x89PNG\r\n": "an image, not a model; give it as data",
    b"\xff\xd8\xff": "an image, not a model; give it as data",
}


def refuse_stranger(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes show that it is something else."""
    if not start:
        raise CheckpointError(f"{path} is empty; get the file again.")
    kind = _kind(path, start)
    if kind is not None:
        raise CheckpointError(f"{path} is {kind}.")


def _kind(path: Path, start: bytes) -> str | None:
    """Write what a file is and what to do; None for what may be weights."""
    text = start.lstrip().lower()
    for beginnings, kind in _TEXTS.items():
        if text.startswith(beginnings):
            return kind
    for beginning, kind in _STARTS.items():
        if start.startswith(beginning):
            return kind
    if start[257:262] == b"ustar":
        return "a tar archive; unpack it and give the file of weights in it"
    if start[4:8] == b"TFL3":
        return "a TensorFlow Lite model, not weights; give the model that it was made from"
    if text.startswith(b"{") and b"\0" not in start[:8]:  # which the length of a safetensors header has
        shards = b'"weight_map"' in start or path.name.endswith(".index.json")
        return (
            "an index of weights in several files; give the folder that holds it and them"
            if shards
            else "JSON, as the settings beside weights are; give the folder, or the file of weights itself"
        )
    if start[8:9] != b"{" and _is_onnx(path, start):
        return "an ONNX model, which is a graph and not weights by name; give the model that it was exported from"
    if start[8:9] != b"{" and _is_msgpack(start):
        return "a msgpack file, as Flax writes; save its parameters as an .npz, or give the PyTorch weights"
    return None


def _is_onnx(path: Path, start: bytes) -> bool:
    """Recognise ONNX's first fields, the version of its format and its producer, in a file that has either name."""
    return start[:1] == b"\x08" and start[2:3] in (b"\x12", b":") and (path.suffix == ".onnx" or start[2:3] == b"\x12")


def _is_msgpack(start: bytes) -> bool:
    """Recognise a table whose first key is short text."""
    table = 0x81 <= start[0] <= 0x8F or start[:1] in (b"\xde", b"\xdf")
    key = start[1 if start[0] < 0x90 else 3 : 4]
    return table and len(key) > 0 and (0xA0 < key[0] <= 0xBF or key[0] == 0xD9)
