"""How long work tells how far it is, without knowing who listens."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

Step = TypeVar("Step")


@runtime_checkable
class Progress(Protocol):
    """Something that passes steps on and counts them for a person: a bar, lines in a log, or nothing."""

    def __call__(self, steps: Iterable[Step], *, total: int, title: str) -> Iterator[Step]:
        """Yield every step as it comes, out of `total`; `title` says what is being done."""


def silent(steps: Iterable[Step], *, total: int, title: str) -> Iterator[Step]:  # noqa: ARG001 - as the protocol has it
    """Pass the steps on and say nothing."""
    yield from steps
