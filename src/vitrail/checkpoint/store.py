"""Our own file: one safetensors file that carries everything, and knows when a bit of it has changed.

| in the header's metadata | what it holds, as JSON                                            |
|--------------------------|-------------------------------------------------------------------|
| vitrail.format           | version of this table                                             |
| vitrail.config           | kind of model and its sizes                                       |
| vitrail.numerics         | the settings that decide outputs, not shapes: epsilons, GELU, ... |
| vitrail.labels           | class names, or null                                              |
| vitrail.preprocessing    | how images become input, or null                                  |
| vitrail.provenance       | data, recipe, metrics, versions, the parent file's digest         |
| vitrail.sha256           | SHA-256 of the whole file with these 64 digits taken as zeros     |
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vitrail.base.container import Container, write_container
from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.base.files import atomic_write
from vitrail.base.reading import parse_json
from vitrail.base.settings import from_dict, to_dict
from vitrail.checkpoint.contents import Contents, needed_shapes
from vitrail.checkpoint.match import check_match
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.family import ModelConfig
from vitrail.model.patches import size_text

VERSION = 1
NUMERICS = ("gelu", "norm_eps", "norm_groups", "position_resize", "standardisation", "standardisation_eps")


def is_store(metadata: Mapping[str, str]) -> bool:
    """Return whether a safetensors file is one of ours."""
    return any(name.startswith("vitrail.") and name != "vitrail.origin" for name in metadata)


def write_store(contents: Contents, path: Path) -> str:
    """Write our file, whole or not at all, and return its digest."""
    check_labels(contents.labels, contents.config.num_classes)
    metadata = {"format": "pt", "vitrail.format": str(VERSION)}
    metadata |= {f"vitrail.{name}": _json(value, name) for name, value in describe(contents).items()}
    with atomic_write(path) as file:
        digest = write_container(file, contents.tensors, metadata, digest=True)
    assert digest is not None  # noqa: S101 - requested above
    return digest


def read_store(container: Container) -> Contents:
    """Check the digest of our file and read its header."""
    path, metadata = container.path, container.metadata
    _refuse_other_kinds(path, metadata)
    recorded = container.recorded_digest()
    if recorded is None or container.computed_digest() != recorded:
        raise CheckpointError(
            f"{path} is damaged: its SHA-256 is not the one that it carries, so at least one bit has changed since "
            "it was written; get the file again or go back to an older one."
        )
    version = metadata.get("vitrail.format", "")
    if version != str(VERSION):
        raise CheckpointError(
            f"{path} is of the format version {version or 'unknown'}, but this Vitrail reads version {VERSION}; "
            "install a newer Vitrail."
        )
    contents = parse({name.removeprefix("vitrail."): text for name, text in metadata.items()}, container, "vitrail")
    check_sane(contents.config, len(container.places), str(path))
    advice = "the file was written with a config that is not its own:"
    check_match(needed_shapes(contents.config), contents.tensors, "the model of its own config", advice=advice)
    return contents.noting(digest=recorded)


def _refuse_other_kinds(path: Path, metadata: Mapping[str, str]) -> None:
    """Return what another file of ours is, and what to give in its place."""
    if "vitrail.progress" in metadata:
        model = path.absolute().parent.parent / "model.safetensors"
        advice = f"give {model}" if model.is_file() else f"finish the run, which then writes {model.name}"
        raise CheckpointError(f"{path} is a checkpoint to resume a run from, not a model; {advice}.")
    if "vitrail.index" in metadata:
        raise CheckpointError(f"{path} is an index of images, not a model; give it as data.")
    if "vitrail.features" in metadata:
        raise CheckpointError(f"{path} holds features of images, not a model; give the model that they are of.")


def describe(contents: Contents) -> dict[str, Any]:
    """Turn everything but the tensors into what JSON can hold."""
    config, numerics = _split(to_dict(contents.config))
    return {
        "config": config,
        "numerics": numerics,
        "labels": None if contents.labels is None else list(contents.labels),
        "preprocessing": None if contents.preprocessing is None else to_dict(contents.preprocessing),
        "provenance": dict(contents.provenance),
    }


def parse(texts: Mapping[str, str], container: Container, layout: str) -> Contents:
    """Undo `describe`, given the JSON of each part."""
    where = str(container.path)
    parts = {}
    for name in ("config", "numerics", "labels", "preprocessing", "provenance"):
        parts[name] = parse_json(texts.get(name, "null"), f"the {name} in the header of {where}", CheckpointError)
    config = read_config(parts["config"], parts["numerics"], where)
    labels, stated = parts["labels"], parts["preprocessing"]
    pixels = None if stated is None else from_dict(Preprocessing, stated, where=f"the preprocessing in {where}")
    if not (labels is None or (isinstance(labels, list) and all(isinstance(label, str) for label in labels))):
        raise CheckpointError(f"the labels in the header of {where} are not a list of names.")
    if not isinstance(parts["provenance"] or {}, dict):
        raise CheckpointError(f"the provenance in the header of {where} is not a table.")
    contents = Contents(
        format=layout,
        config=config,
        tensors=container.source,
        labels=None if labels is None else tuple(labels),
        preprocessing=pixels,
        provenance=parts["provenance"] or {},
    )
    check_labels(contents.labels, config.num_classes)
    check_pixels(contents.preprocessing, config)
    return contents


def read_config(sizes: Any, numerics: Any, where: str) -> ModelConfig:
    """Make a config of its two parts."""
    known = sorted(ModelConfig.members)
    if not isinstance(sizes, dict) or not isinstance(numerics, dict) or sizes.get("kind") not in known:
        raise CheckpointError(f"the header of {where} has no config of a model of a known kind: {', '.join(known)}.")
    settings = _merge(sizes, numerics)
    return from_dict(ModelConfig.members[sizes["kind"]], settings, where=f"the settings in the header of {where}")


def check_labels(labels: tuple[str, ...] | None, num_classes: int) -> None:
    """Refuse class names that are not one for each class."""
    if labels is None:
        return
    if not all(isinstance(label, str) for label in labels):
        raise ConfigError(f"labels are names, but {next(x for x in labels if not isinstance(x, str))!r} is not text.")
    if len(labels) != num_classes:
        raise ConfigError(
            f"{len(labels)} labels were given for {num_classes} classes; give one name for each class, in the "
            "order of the outputs."
        )


def check_pixels(pixels: Preprocessing | None, config: ModelConfig) -> None:
    """Refuse preprocessing that makes images which the model does not take; a ResNet takes any size."""
    if pixels is None:
        return
    if pixels.channels != config.channels or (not config.any_size and pixels.image_size != config.image_size):
        raise ConfigError(
            f"preprocessing makes images of {size_text(pixels.image_size)} with {pixels.channels} channels, but the "
            f"model takes {size_text(config.image_size)} with {config.channels}; give the model's own."
        )


def check_sane(config: ModelConfig, tensors: int, where: str) -> None:
    """Refuse a config that claims far more than the file can hold, before anything is built from it."""
    if config.num_blocks > tensors:
        raise CheckpointError(
            f"the config of {where} claims {config.num_blocks:,} blocks, which a file of {tensors} tensors does not "
            "hold; get the file again."
        )


def versions() -> dict[str, str]:
    """Return what a file was written with."""
    from vitrail import __version__

    return {"vitrail": __version__, "torch": torch.__version__}


def _json(value: Any, name: str) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=name == "provenance", sort_keys=name == "provenance")
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the {name} cannot be written as JSON ({error}); use text, numbers, lists and dicts."
        ) from None


def _split(settings: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate numerics from sizes, in settings inside settings too."""
    sizes: dict[str, Any] = {}
    numerics: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            sizes[name], inner = _split(value)
            numerics |= {name: inner} if inner else {}
        else:
            (numerics if name in NUMERICS else sizes)[name] = value
    return sizes, numerics


def _merge(sizes: dict[str, Any], numerics: dict[str, Any]) -> dict[str, Any]:
    """Undo `_split`; a name in both stays a contradiction that the reader of settings reports."""
    merged = dict(sizes)
    for name, value in numerics.items():
        inner = merged.get(name)
        merged[name] = _merge(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged
