"""List published models."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.published.cache import Cache
from vitrail.published.catalogue import CATALOGUE, look_up
from vitrail.published.entry import Published
from vitrail.published.source import Source
from vitrail.verbs.patterns import matching


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishedList(Tabular, Sequence[Published]):
    """Published models, and which of them are on this machine."""

    rows: tuple[Published, ...]
    """The models, family by family."""
    here: frozenset[str] = frozenset()
    """The names of those that were pulled."""

    def __len__(self) -> int:
        """Count the models."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Published]:
        """Walk over the models."""
        return iter(self.rows)

    @overload
    def __getitem__(self, at: int) -> Published: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Published]: ...
    def __getitem__(self, at: int | slice) -> Published | Sequence[Published]:
        """Return a model by its place."""
        return self.rows[at]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(row.name for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {"published": [asdict(row) | {"here": row.name in self.here} for row in self.rows]}

    def tables(self) -> list[Table]:
        """Return a table with a row for each model, or all facts of one."""
        if len(self.rows) == 1:
            return [self._facts(self.rows[0])]
        cells = tuple(
            (
                row.name,
                str(row.image_size),
                row.licence,
                "yes" if row.name in self.here else "-",
                row.data,
            )
            for row in self.rows
        )
        columns = ("name", "pixels", "licence", "here", "note")
        notes = ("`vitrail pull NAME` gets one; its name then stands for its path.",)
        return [Table(title="Published models", columns=columns, rows=cells, notes=notes)]

    def _facts(self, row: Published) -> Table:
        unknown = "not known before it is pulled"
        rows = (
            ("published at", row.source),
            ("trained on", row.data),
            ("licence", row.licence + (", to be accepted on its page first" if row.gated else "")),
            ("image size", str(row.image_size)),
            ("preprocessing", row.pixels),
            ("heads", str(row.num_heads or "-")),
            ("classes", str(row.classes or "none: a representation")),
            ("size", unknown if row.size is None else in_bytes(row.size)),
            ("sha256", row.sha256 or unknown),
            ("on this machine", "yes" if row.name in self.here else f"no: vitrail pull {row.name}"),
        )
        return Table(title=row.name, columns=("", "value"), rows=rows)


def list_published(pattern: str | Iterable[str] = "*") -> PublishedList:
    """List published models that have a name here: where each is published, its licence, what it was trained on.

    `pattern` is a name ("dinov2-S/14"), a pattern ("dinov2-*"), or several of them. No network is used.

    >>> models = vitrail.list_published("dinov2-*/14")
    >>> models.names
    ('dinov2-S/14', 'dinov2-B/14', 'dinov2-L/14', 'dinov2-g/14')
    >>> models[0].source, models[0].licence, models[0].num_heads
    ('hf:facebook/dinov2-small', 'Apache-2.0', 6)
    """
    rows: dict[str, Published] = {}
    for name in matching(pattern, tuple(CATALOGUE), kind="published model"):
        row = look_up(name)
        if row is None:
            raise ConfigError(f"there is no published model {name!r}.{did_you_mean(name, CATALOGUE)}")
        rows[row.name] = row
    if not rows:
        raise ConfigError("there is no pattern; '*' lists every model.")
    cache = Cache.usual()
    sources = {row.name: Source(name=row.name, place=row.source, entry=row) for row in rows.values()}
    here = frozenset(name for name, source in sources.items() if cache.record(source) is not None)
    return PublishedList(rows=tuple(rows.values()), here=here)
