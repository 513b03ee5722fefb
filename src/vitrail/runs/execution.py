"""The settings of how a run computes: device, threads, memory, checkpoints."""

from dataclasses import dataclass
from typing import Literal, get_args

from vitrail.base.errors import ConfigError
from vitrail.base.trackers import TrackerName

Device = Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How the work is done, which resuming may change.

    Results stay the same but for rounding; with dropout or dropped patches, another micro-batch drops others.
    """

    device: Device = "auto"
    """Where to compute; auto takes the GPU if there is one."""
    threads: int | None = None
    """Threads for computing on a CPU; None is torch's own choice."""
    micro_batch: int | None = None
    """Images of one rank that go through the model at once; None for all of them."""
    workers: int = 0
    """Processes that read and augment images on each rank; 0 reads in the training process itself."""
    recompute: bool = False
    """Keep only each block's input and compute the rest again: less memory, a third more time."""
    compiled: bool = False
    """Use torch.compile."""
    shard: bool = False
    """Spread parameters, gradients and optimiser over the ranks (FSDP2) and not only the batch (DDP)."""
    checkpoint_every: int = 500
    """Steps between checkpoints."""
    keep_checkpoints: int = 2
    """Newest checkpoints that stay."""
    track: tuple[TrackerName, ...] = ()
    """Trackers that see the metrics too."""

    def __post_init__(self) -> None:
        """Refuse values outside their bounds."""
        if self.device not in get_args(Device):
            raise ConfigError(f"device is {self.device!r}, but must be one of {', '.join(get_args(Device))}.")
        for name, least in (
            ("checkpoint_every", 1),
            ("keep_checkpoints", 1),
            ("workers", 0),
            ("micro_batch", 1),
            ("threads", 1),
        ):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least {least}.")
