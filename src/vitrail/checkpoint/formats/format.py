"""What a format of model files is: one value in the file that knows the format, and one line in `all.py`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.formats.abilities import Abilities, check_expressible, lacking, with_numerics
from vitrail.checkpoint.formats.fold import fold_positions
from vitrail.checkpoint.infer import Hints
from vitrail.model.family import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What a reader starts from: tensors by the names of the file, and what lies beside them."""

    source: TensorSource
    hints: Hints = field(default_factory=dict)
    """Fields of the config that the caller knows."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The `config.json` in the same folder; empty where there is none."""
    pixels: dict[str, Any] = field(default_factory=dict)
    """The `preprocessor_config.json` in the same folder; empty where there is none."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """A layout of somebody else's files: how it is recognised, read and written."""

    name: str
    """What `save(..., to=...)` calls it; several layouts may share one, each for other kinds of models."""
    suffixes: tuple[str, ...]
    """How its files end; an empty one stands for a folder."""
    abilities: Abilities
    """What it can hold."""
    headless: Abilities | None = None
    """The same for a model without classes, where that is another one of the library's."""
    recognises: Callable[[set[str]], bool] = lambda _: False
    """Whether a file has it, by the names of its tensors; never where another layout reads the file."""
    read: Callable[[Weights], Contents] | None = None
    """Reads what `recognises` recognised."""
    write: Callable[[Contents, Path], Contents] | None
    """Writes a model that it can hold, and returns what was written, with notes; None where it is only read."""

    def lacks(self, contents: Contents) -> int:
        """Count the parts of a model that it cannot hold."""
        abilities = self.abilities_for(contents.config)
        return len(lacking(fold_positions(contents, abilities.positions).config, abilities))

    def save(self, contents: Contents, path: Path, *, lossy: bool) -> Contents:
        """Write a file, after what it cannot hold has been rewritten exactly, or refused."""
        self.check_path(path)
        abilities = self.abilities_for(contents.config)
        rewritten = fold_positions(contents, abilities.positions)
        check_expressible(rewritten.config, abilities, lossy=lossy)
        assert self.write is not None  # noqa: S101 - `write_any` chooses among those that have one
        return self.write(rewritten.noting(config=with_numerics(rewritten.config, abilities)), path)

    def abilities_for(self, config: ModelConfig) -> Abilities:
        """Return what it can hold of a model with or without classes."""
        return self.headless if self.headless is not None and config.num_classes == 0 else self.abilities

    def check_path(self, path: Path) -> None:
        """Refuse a name that would mislead the next reader of the file."""
        suffixes = [suffix for suffix in self.suffixes if suffix]
        if path.suffix in self.suffixes:
            return
        if not suffixes:
            raise CheckpointError(
                f"the format {self.name} is a folder, but {path} has the suffix {path.suffix!r}; "
                "give a name without one."
            )
        raise CheckpointError(
            f"a {self.name} file ends in {suffixes[0]}{', or is a folder' if '' in self.suffixes else ''}, but {path} "
            f"does not; name it {path.with_suffix(suffixes[0])}."
        )
