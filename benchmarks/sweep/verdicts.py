"""What the sweep says of one model: exact, asked, refused, wrong or unchecked, with the figure or the sentence."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

import vitrail
from vitrail import VitrailError

CLOSE = 1e-5


class Verdict(NamedTuple):
    """One way of loading one model."""

    library: str
    name: str
    way: str
    verdict: str
    detail: str


class Ledger:
    """A file with one JSON line for each verdict; what stands in it is not tried again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.verdicts = [Verdict(**json.loads(line)) for line in lines]

    def has(self, library: str, name: str) -> bool:
        return any((verdict.library, verdict.name) == (library, name) for verdict in self.verdicts)

    def add(self, verdicts: Sequence[Verdict]) -> None:
        """Keep all verdicts of one model, in one write."""
        self.verdicts += verdicts
        if self.path is not None:
            with self.path.open("a") as file:
                file.write("".join(json.dumps(verdict._asdict()) + "\n" for verdict in verdicts))


@torch.no_grad()
def randomised(model: nn.Module) -> nn.Module:
    """Move every weight off its initial value; those at zero and one matter most."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        spread = 0.02 if parameter.ndim > 1 else 0.3
        parameter.add_(torch.empty_like(parameter).uniform_(-spread, spread, generator=generator))
    return model.eval()


def images_of(height: int, width: int, count: int = 2) -> Tensor:
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def judge(path: Path, images: Tensor, wanted: Callable[[], Tensor | None], **answers: object) -> tuple[str, str]:
    """Load a file and compare its outputs with those of the library that wrote it."""
    try:
        model = vitrail.load(path, **answers)
    except VitrailError as error:
        return "refused", str(error).replace(str(path), "the file").splitlines()[0]
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    expected = wanted()
    if expected is None:
        return "unchecked", "it loads, but its library gave nothing to compare with"
    try:
        outputs = model(images)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    if outputs.shape != expected.shape:
        return "wrong", f"gives {tuple(outputs.shape)}, not {tuple(expected.shape)}"
    off = ((outputs - expected).abs().max() / expected.abs().max()).item()
    return "exact" if off < CLOSE else "wrong", f"{off:.1e}"
