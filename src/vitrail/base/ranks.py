"""Rank, world size and process group; the only file that knows torch.distributed's environment.

A single process is a world of one, where everything below is the identity. Under torchrun, `join` enters the group.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from vitrail.base.errors import ConfigError, InputError, RankError, VitrailError

_CPU = torch.device("cpu")
_NUMBERS = ("RANK", "WORLD_SIZE", "MASTER_PORT")
PATIENCE = timedelta(minutes=10)
"""How long a rank waits for the others before it gives up; torchrun then starts all of them again."""
_PARTING = 0.2
"""Seconds in which gloo's threads release the tensors of the last exchange, which needs Python's lock.

A thread that still holds one when the interpreter ends aborts a process that has finished its work.
"""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """One process among `world`."""

    rank: int = 0
    world: int = 1
    device: torch.device = _CPU

    @property
    def first(self) -> bool:
        """Whether this is the one process that writes and prints."""
        return self.rank == 0

    def share(self, batch: int) -> int:
        """Return how many images of a global batch each rank takes."""
        if batch % self.world:
            fit = max(batch // self.world, 1) * self.world
            raise ConfigError(f"a batch of {batch} does not split over {self.world} ranks; choose {fit}.")
        return batch // self.world

    def sum(self, tensor: Tensor) -> Tensor:
        """Add a tensor over all ranks, in place."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def sum_learned(self, tensor: Tensor) -> Tensor:
        """Add a tensor over all ranks, such that gradients flow back to each."""
        if self.world == 1:
            return tensor
        return cast("Tensor", _LearnedSum.apply(tensor))  # type: ignore[no-untyped-call]  # torch does not type it

    def gather(self, rows: Tensor) -> Tensor:
        """Put the rows of all ranks, which have equally many, one after the other; no gradient flows back."""
        if self.world == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.world)]
        dist.all_gather(parts, rows.detach().contiguous())
        return torch.cat(parts)

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set on any rank."""
        return flag if self.world == 1 else bool(self.sum(torch.tensor(int(flag), device=self.device)))

    def agree(self, number: int) -> int:
        """Return the first rank's number on every rank."""
        if self.world == 1:
            return number
        tensor = torch.tensor(number, dtype=torch.int64, device=self.device)
        dist.broadcast(tensor, 0)
        return int(tensor)

    def follow(self, work: Callable[[], int]) -> int:
        """Let the first rank do some work, and return its number on every rank; its refusal ends them all."""
        number, problem = 0, None
        if self.first:
            try:
                number = work()
            except VitrailError as error:
                problem = error
        if self.any(problem is not None):
            raise problem or InputError("the first rank could not begin, and reports why.")
        return self.agree(number)

    def wait(self) -> None:
        """Wait until every rank has called this."""
        self.agree(0)


class _LearnedSum(torch.autograd.Function):
    """A sum over ranks: what each rank adds acts on the loss of all of them, whose gradients add up in turn."""

    @staticmethod
    def forward(_: Any, tensor: Tensor) -> Tensor:
        """Add the tensors of all ranks."""
        total = tensor.detach().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        """Add the gradients of all ranks."""
        total = gradient.clone()
        dist.all_reduce(total)
        return total


def is_first() -> bool:
    """Return whether this process is alone or the first rank, inside of `join` or not."""
    return (dist.get_rank() if dist.is_initialized() else _variable("RANK", 0)) == 0


def ranks_here() -> int:
    """Return how many ranks share this machine."""
    return max(_variable("LOCAL_WORLD_SIZE", 1), 1)


def best_device() -> torch.device:
    """Return this process's own accelerator, or the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", _variable("LOCAL_RANK", 0))
    return torch.device("mps") if torch.backends.mps.is_available() else torch.device("cpu")


def as_device(name: str | torch.device) -> torch.device:
    """Return a device by its name, or refuse one that is not there."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ConfigError(f"`device` is {name!r}, but must be auto, cpu, cuda or mps.") from None
    check_device(device)
    return device


def check_device(device: torch.device) -> None:
    """Refuse a device that this machine does not have."""
    if device.type == "meta":
        raise ConfigError("a model on the device 'meta' has no weights; build it on another device, such as cpu.")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(device.type, False):
        raise ConfigError(f"there is no {device.type} device that torch can use here; choose auto or cpu.")


@contextmanager
def join(device: torch.device | None = None) -> Iterator[Ranks]:
    """Join the process group that torchrun describes, if it does, and leave it at the end."""
    device = device or best_device()
    check_device(device)
    if dist.is_initialized():  # by the caller's own program
        yield Ranks(rank=dist.get_rank(), world=dist.get_world_size(), device=device)
        return
    meeting = read_environment()
    if meeting is None:
        yield Ranks(device=device)
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=_store(meeting),
            rank=meeting.rank,
            world_size=meeting.world,
            timeout=PATIENCE,
        )
    except (dist.DistError, RuntimeError, ValueError) as error:
        raise InputError(
            f"rank {meeting.rank} could not meet the others of {meeting.world} at {meeting.address}:{meeting.port} "
            f"({str(error).splitlines()[0]}); start all of them, with torchrun."
        ) from error
    try:
        yield Ranks(rank=meeting.rank, world=meeting.world, device=device)
    except RuntimeError as error:
        if not _is_of_backend(error):
            raise
        raise RankError(
            f"rank {meeting.rank} has lost another of {meeting.world} ({str(error).splitlines()[0][:200]}); the same "
            "command resumes, and torchrun does so by itself if its restarts are allowed."
        ) from error
    finally:
        dist.destroy_process_group()
        time.sleep(_PARTING)


def _is_of_backend(error: RuntimeError) -> bool:
    """Return whether an error comes from the transport between ranks; gloo has no exception class for these."""
    return isinstance(error, dist.DistError) or any(name in str(error) for name in ("gloo", "NCCL", "Connection"))


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """The environment that torchrun gives a process: its rank, and the address of the others."""

    rank: int
    world: int
    address: str
    port: int


def read_environment() -> Meeting | None:
    """Return what torchrun has set, None if nothing; what is set by half is refused, and not taken for one process."""
    there = {name: os.environ[name] for name in (*_NUMBERS, "MASTER_ADDR") if name in os.environ}
    if "RANK" not in there and "WORLD_SIZE" not in there:
        return None
    if missing := [name for name in (*_NUMBERS, "MASTER_ADDR") if name not in there]:
        raise ConfigError(
            f"the environment has {' and '.join(there)} but not {' and '.join(missing)}, of which torchrun sets all; "
            "start with torchrun, or unset them to train in one process."
        )
    numbers = {name: _number(name, there[name]) for name in _NUMBERS}
    if not numbers["RANK"] < numbers["WORLD_SIZE"]:
        raise ConfigError(f"RANK is {numbers['RANK']}, but must be below WORLD_SIZE, which is {numbers['WORLD_SIZE']}.")
    return Meeting(
        rank=numbers["RANK"], world=numbers["WORLD_SIZE"], address=there["MASTER_ADDR"], port=numbers["MASTER_PORT"]
    )


def _variable(name: str, otherwise: int) -> int:
    return _number(name, os.environ[name]) if name in os.environ else otherwise


def _number(name: str, text: str) -> int:
    """Read a number that torchrun sets."""
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= 65535 and len(text) < 9):
        raise ConfigError(
            f"the environment variable {name} is {text[:40]!r}, but must be a number as torchrun sets it."
        )
    return int(text)


def _store(meeting: Meeting) -> Store:
    """Return the store where ranks find each other, with a separate prefix for each restart.

    A rank that torchrun restarted could otherwise read the address of a dead one, and wait for it.
    """
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = TCPStore(meeting.address, meeting.port, meeting.world, not agent and meeting.rank == 0, PATIENCE)
    return PrefixStore(f"vitrail/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
