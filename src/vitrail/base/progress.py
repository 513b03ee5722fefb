"""How long work reports its progress, whoever displays it."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

Step = TypeVar("Step")


@runtime_checkable
class Progress(Protocol):
    """Yields steps and shows the user how many are done: as a bar, as lines in a log, or not at all."""

    def __call__(self, steps: Iterable[Step], *, total: int, title: str) -> Iterator[Step]:
        """Yield every step as it comes, out of `total`; `title` says what is being done."""


def silent(steps: Iterable[Step], *, total: int, title: str) -> Iterator[Step]:  # noqa: ARG001 - as the protocol has it
    """Yield the steps and show nothing."""
    yield from steps
