"""Repositories of Hugging Face, through its own library: its cache, token, endpoint and offline setting are its own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import ConfigError, InputError, NetworkError
from vitrail.base.extras import require
from vitrail.base.notes import Note
from vitrail.published.download import check_room
from vitrail.published.record import FileFacts, facts_of

SETTINGS = ("config.json", "preprocessor_config.json", "open_clip_config.json")
_WEIGHTS = (
    *("model.safetensors", "model.safetensors.index.json", "open_clip_model.safetensors"),
    *("pytorch_model.bin", "pytorch_model.bin.index.json", "open_clip_pytorch_model.bin"),
)
"""What makes a folder a model, the best first: pickles last."""
_LONE = (".safetensors", ".npz", ".pth")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The files of a repository that make a model."""

    folder: Path
    main: str
    """What is loaded, below `folder`: a file, or nothing for the folder itself."""
    files: dict[str, FileFacts]
    revision: str


def fetch_snapshot(repository: str, revision: str | None, *, title: str, note: Note) -> Snapshot:
    """Get the weights and settings of a repository, or take them from the cache of Hugging Face if it is offline."""
    hub = require("huggingface_hub", extra="hub", purpose="a name that begins with hf:")
    errors = require("huggingface_hub.errors", extra="hub", purpose="a name that begins with hf:")
    try:
        try:
            info = hub.HfApi(library_name="vitrail").model_info(repository, revision=revision, files_metadata=True)
        except errors.HfHubHTTPError:  # the server itself refuses
            raise
        except (errors.OfflineModeIsEnabled, errors.HTTPError):
            return _cached(hub, repository, revision)
        listed = {part.rfilename: part for part in info.siblings}
        main, names = choose(listed, repository)
        _check_room(hub, listed, names, title)
        for name in names:
            hub.hf_hub_download(repository, name, revision=info.sha, library_name="vitrail")
        folder = Path(hub.snapshot_download(repository, revision=info.sha, allow_patterns=names, local_files_only=True))
    except (errors.HFValidationError, errors.HTTPError, OSError) as error:
        raise _refusal(hub, error, repository, revision) from None
    facts = {name: facts_of(folder / name) for name in names}
    for name, part in facts.items():
        _check_published(listed[name], part, title)
    note(f"{title} is at the commit {info.sha[:12]} of {repository}.")
    return Snapshot(folder=folder, main=main, files=facts, revision=info.sha)


def choose(listed: Iterable[str], repository: str) -> tuple[str, list[str]]:
    """Return what is loaded and which files that takes: safetensors rather than a pickle, all shards of an index."""
    names = sorted(listed)
    best = next((name for name in _WEIGHTS if name in names), None)
    if best is not None:
        start, end = best.removesuffix(".index.json").rsplit(".", 1)
        shards = [name for name in names if name.startswith(f"{start}-") and name.endswith(f".{end}")]
        weights = [best, *shards] if best.endswith(".index.json") else [best]
        return "", [*weights, *(name for name in SETTINGS if name in names)]
    lone = [name for name in names if name.endswith(_LONE) and "/" not in name]
    if len(lone) != 1:
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") or "no files"
        raise InputError(f"{repository} has no {_WEIGHTS[0]} and not one file of weights alone; it has {listed}.")
    return lone[0], lone


def _cached(hub: Any, repository: str, revision: str | None) -> Snapshot:
    """Take what the cache of Hugging Face has."""
    folder = Path(hub.snapshot_download(repository, revision=revision, local_files_only=True))
    main, names = choose((path.name for path in folder.iterdir()), repository)
    return Snapshot(
        folder=folder, main=main, files={name: facts_of(folder / name) for name in names}, revision=folder.name
    )


def _check_room(hub: Any, listed: Mapping[str, Any], names: Iterable[str], title: str) -> None:
    folder = Path(hub.constants.HF_HUB_CACHE)
    folder.mkdir(parents=True, exist_ok=True)
    check_room(folder, sum(listed[name].size or 0 for name in names), title)


def _check_published(part: Any, facts: FileFacts, title: str) -> None:
    """Hold a file against the size and the digest that the repository lists."""
    digest = None if part.lfs is None else part.lfs.sha256
    if part.size is not None and part.size != facts.size:
        raise NetworkError(
            f"{title}: {part.rfilename} has {facts.size:,} bytes, but its repository lists {part.size:,}."
        )
    if digest is not None and digest != facts.sha256:
        raise NetworkError(
            f"{title}: {part.rfilename} has the SHA-256 {facts.sha256[:16]}, but its repository lists {digest[:16]}; "
            "it was damaged on the way: remove it from the cache of Hugging Face, and pull again."
        )


def _refusal(hub: Any, error: Exception, repository: str, revision: str | None) -> Exception:
    """Turn what Hugging Face's library raises into a sentence."""
    errors, endpoint = hub.errors, hub.constants.ENDPOINT
    if isinstance(error, errors.HFValidationError):
        return ConfigError(f"{repository} is not the name of a repository of Hugging Face; write hf:OWNER/NAME.")
    if isinstance(error, errors.GatedRepoError):
        return NetworkError(
            f"{repository} is gated: accept its licence on its page, then give your token in HF_TOKEN, or by "
            "`hf auth login`."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return NetworkError(f"{repository} has no revision {revision}.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return NetworkError(f"there is no repository {repository} at {endpoint}, or it is private and needs HF_TOKEN.")
    if isinstance(error, errors.LocalEntryNotFoundError):
        return NetworkError(
            f"{repository} is not in the cache of Hugging Face, and {endpoint} cannot be reached: there is no network, "
            "or HF_HUB_OFFLINE is set."
        )
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return NetworkError(f"{repository} could not be downloaded from {endpoint}: {reason}.")
