"""A step of DINO with S/16: Vitrail beside a plain implementation, in one process.

    python benchmarks/dino_step.py [--threads 2] [--batch 8] [--rounds 4] [--save]

The plain one is written out below as one writes it with torch alone, after the paper: views of one size in one pass,
fused attention, weight norm by torch, the loss as a sum over pairs, a teacher without gradients that follows parameter
by parameter, AdamW (fused) and clipping as in torch. Both do the same work: two views of 224 pixels and eight of 96,
65,536 prototypes, stochastic depth off. First, both compute the same loss from the same weights.
"""

import argparse
import copy
import math

import torch
import torch.nn.functional as F
from contest import contest, gemm_peak, save, show
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from vitrail.base.ranks import Ranks
from vitrail.data.batch import Batch
from vitrail.data.preprocessing import preset
from vitrail.model.build import create
from vitrail.selfsup.dino import Dino, DinoConfig
from vitrail.training.learner import Task, make_learner
from vitrail.training.optimizers import OptimizerConfig, make_optimizer
from vitrail.training.state import TrainState
from vitrail.training.step import StepConfig, take_step

DIM, DEPTH, HEADS, PATCH, GRID = 384, 12, 6, 16, 14
PREPROCESSING = preset("imagenet")
FLOPS = 6 * 4.60e9


class Block(nn.Module):
    """A pre-norm block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM, eps=1e-6), nn.LayerNorm(DIM, eps=1e-6)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x: Tensor) -> Tensor:
        """Attend, then transform."""
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class PlainViT(nn.Module):
    """S/16 with a class token, for images of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, DIM))
        self.positions = nn.Parameter(torch.randn(1, GRID * GRID + 1, DIM) * 0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(DIM, eps=1e-6)

    def forward(self, images: Tensor) -> Tensor:
        """Return the class token."""
        x = self.patches(images)
        grid = tuple(x.shape[2:])
        x = torch.cat([self.token.expand(len(x), -1, -1), x.flatten(2).transpose(1, 2)], 1)
        positions = self.positions
        if grid != (GRID, GRID):
            cells = positions[:, 1:].transpose(1, 2).unflatten(2, (GRID, GRID))
            cells = F.interpolate(cells, grid, mode="bilinear", align_corners=True).flatten(2).transpose(1, 2)
            positions = torch.cat([positions[:, :1], cells], 1)
        return self.norm(self.blocks(x + positions))[:, 0]


class PlainHead(nn.Module):
    """Three layers, length 1, prototypes with weight norm."""

    def __init__(self, config: DinoConfig) -> None:
        super().__init__()
        hidden, bottleneck = config.hidden, config.bottleneck
        self.mlp = nn.Sequential(
            nn.Linear(DIM, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, bottleneck)
        )
        self.last = weight_norm(nn.Linear(bottleneck, config.prototypes, bias=False))
        self.last.parametrizations.weight.original0.data.fill_(1)
        self.last.parametrizations.weight.original0.requires_grad = False

    def forward(self, x: Tensor) -> Tensor:
        """Score the prototypes."""
        return self.last(F.normalize(self.mlp(x), dim=-1))


class Plain:
    """Student, teacher, centre, optimiser, and a step."""

    def __init__(self, config: DinoConfig) -> None:
        self.config = config
        self.student = nn.ModuleList([PlainViT(), PlainHead(config)])
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.centre = torch.zeros(1, config.prototypes)
        parameters = [weight for weight in self.student.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.04, fused=True)

    def loss(self, views: list[Tensor]) -> Tensor:
        """Return the mean over pairs, and move the centre."""
        large, local = torch.cat(views[:2]), torch.cat(views[2:])
        with torch.no_grad():
            taught = self.teacher[1](self.teacher[0](large))
        scores = self.student[1](torch.cat([self.student[0](large), self.student[0](local)]))
        answers = (scores / self.config.student_temperature).chunk(len(views))
        targets = F.softmax((taught - self.centre) / self.config.teacher_temperature, dim=-1).chunk(2)
        terms = [
            torch.sum(-target * F.log_softmax(answer, dim=-1), dim=-1).mean()
            for seen, target in enumerate(targets)
            for view, answer in enumerate(answers)
            if view != seen
        ]
        self.centre = self.centre * 0.9 + taught.mean(0, keepdim=True) * 0.1
        return torch.stack(terms).sum() / len(terms)

    def step(self, pixels: list[Tensor]) -> None:
        """Normalise, learn, clip, move, and let the teacher follow."""
        mean, std = (torch.tensor(values)[:, None, None] for values in (PREPROCESSING.mean, PREPROCESSING.std))
        views = [(view.float() / 255 - mean) / std for view in pixels]
        loss = self.loss(views)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), 3.0)
        self.optimizer.step()
        with torch.no_grad():
            for quick, slow in zip(self.student.parameters(), self.teacher.parameters(), strict=True):
                slow.data.mul_(0.996).add_((1 - 0.996) * quick.detach().data)


def take_over(plain: Plain, learner: Dino) -> None:
    """Give the plain implementation our weights."""
    own, theirs = learner.model.state_dict(), plain.student[0].state_dict()
    names = {"patches": "embedding.projection", "norm": "encoder.norm"}
    for number in range(DEPTH):
        block, ours = f"blocks.{number}", f"encoder.blocks.{number}"
        inner = {"qkv": "attention.qkv", "out": "attention.out", "mlp.0": "mlp.hidden", "mlp.2": "mlp.out"}
        inner |= {"norm1": "norm1", "norm2": "norm2"}
        names |= {f"{block}.{one}": f"{ours}.{other}" for one, other in inner.items()}
    for one, other in names.items():
        for part in ("weight", "bias"):
            theirs[f"{one}.{part}"] = own[f"{other}.{part}"].reshape(theirs[f"{one}.{part}"].shape)
    theirs["token"] = own["embedding.class_token"][None]
    theirs["positions"] = own["embedding.positions.table"][None]
    plain.student[0].load_state_dict(theirs)
    plain.student[1].mlp.load_state_dict(learner.head.mlp.state_dict())
    plain.student[1].last.parametrizations.weight.original1.data.copy_(learner.head.prototypes.weight)
    plain.teacher.load_state_dict(plain.student.state_dict())


def main() -> None:
    """Compare the losses, then the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--save", action="store_true")
    words = parser.parse_args()
    torch.set_num_threads(words.threads)
    torch.manual_seed(0)
    config = DinoConfig(frozen_prototypes=0.0, temperature_warmup=0.5)
    model = create("S/16", num_classes=0, gelu="erf", seed=0)
    learner = make_learner(config, model, Task(preprocessing=PREPROCESSING, threads=words.threads), seed=0)
    state = TrainState(
        learner=learner,
        optimizer=make_optimizer(learner, OptimizerConfig(weight_decay=0.04, clip_norm=3.0), 1e-4),
    )
    plain = Plain(config)
    take_over(plain, learner)
    sides = [224, 224] + [96] * config.local_views
    pixels = [
        torch.randint(0, 256, (words.batch, side, side, 3), dtype=torch.uint8).permute(0, 3, 1, 2) for side in sides
    ]
    numbers = torch.arange(words.batch)
    batch = Batch(views=tuple(pixels), targets={}, indices=numbers, positions=numbers)
    settings = StepConfig(micro_batch=words.batch, clip_norm=3.0)

    def ours() -> None:
        take_step(state, learner, batch, 1e-4, steps=10**6, config=settings, ranks=Ranks())

    mean, std = (torch.tensor(values)[:, None, None] for values in (PREPROCESSING.mean, PREPROCESSING.std))
    with torch.no_grad():
        theirs = float(plain.loss([(view.float() / 255 - mean) / std for view in pixels]))
        own = float(learner(batch)[0])
    if not math.isclose(own, theirs, rel_tol=1e-4):
        raise SystemExit(f"the two do not compute the same loss: {own} and {theirs}.")
    peak = gemm_peak()
    flops = FLOPS * words.batch * config.flops_factor(model.config)
    timings = contest(
        {"vitrail": ours, "plain": lambda: plain.step(pixels)},
        ours="vitrail",
        images=words.batch,
        flops=flops,
        rounds=words.rounds,
        peak=peak,
    )
    title = f"a step of DINO, S/16, batch {words.batch}, {words.threads} threads"
    show(title, timings)
    if words.save:
        save("dino_step", {title: timings}, peak)


if __name__ == "__main__":
    main()
