"""Optimisers against their equations in NumPy, and which parameter gets what."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.products import product_type
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.build import create
from vitrail.model.contract import Layer, Model
from vitrail.model.family import ModelConfig
from vitrail.training import muon
from vitrail.training.classification import Classification, ClassificationConfig
from vitrail.training.learner import Learner, Task
from vitrail.training.muon import COEFFICIENTS, SCALE, Kernel, Muon, deal, move, orthogonalise
from vitrail.training.optimizers import (
    LARGEST_MUON_RATE,
    OptimizerConfig,
    clip,
    freeze,
    is_kernel,
    make_optimizer,
    parameter_groups,
    set_rate,
)
from vitrail.training.schedules import LARGEST_RATE


@dataclass(frozen=True, kw_only=True)
class OneKernelConfig(ModelConfig):
    """The settings of a model that is one matrix."""

    feature_width = 3
    summary = "one kernel"


class OneKernel(Model, config=OneKernelConfig):
    """The smallest model: its weight is a kernel of 4 x 3 and the whole of its only layer."""

    last_linear = None

    def __init__(self) -> None:
        super().__init__(OneKernelConfig())
        self.weight = nn.Parameter(torch.empty(4, 3))

    def layers(self) -> list[Layer]:
        return [Layer(name="head", prefixes=("weight",))]

    def features(self, images: Tensor, **_: Any) -> Tensor:
        return images.mean(dim=(2, 3))


def learner_of(model: Model) -> Learner:
    return Classification(model, ClassificationConfig(), Task(preprocessing=Preprocessing()))


def _adam(weight: np.ndarray, gradients: np.ndarray, rates: list[float], decay: float) -> np.ndarray:
    """Adam with decoupled decay, by the book."""
    mean, square = np.zeros_like(weight), np.zeros_like(weight)
    for step, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        weight = weight * (1 - rate * decay)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        weight = weight - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weight


def _sgd(weight: np.ndarray, gradients: np.ndarray, rates: list[float], decay: float) -> np.ndarray:
    """SGD with momentum and decoupled decay."""
    velocity = np.zeros_like(weight)
    for gradient, rate in zip(gradients, rates, strict=True):
        weight = weight * (1 - rate * decay)
        velocity = 0.9 * velocity + gradient
        weight = weight - rate * velocity
    return weight


@pytest.mark.parametrize(("name", "reference"), [("adam", _adam), ("sgd", _sgd)])
@pytest.mark.parametrize("by", ["rate", "schedule"])
def test_weights_follow_the_equations(name: str, reference, by: str) -> None:
    generator = np.random.default_rng(0)
    model = OneKernel()
    start = generator.normal(size=(4, 3))
    gradients = generator.normal(size=(6, 4, 3))
    rates = [0.01, 0.02, 0.05, 0.05, 0.03, 0.01]
    with torch.no_grad():
        model.weight.copy_(torch.tensor(start))
    config = OptimizerConfig(name=name, weight_decay=0.1, decay_by=by)  # type: ignore[arg-type]
    optimizer = make_optimizer(learner_of(model), config, 0.05)
    for gradient, rate in zip(gradients, rates, strict=True):
        model.weight.grad = torch.tensor(gradient, dtype=torch.float32)
        set_rate(optimizer, rate)
        optimizer.step()
    # big_vision multiplies by the schedule alone: decay 0.1 there is decay 0.1 / peak here
    expected = reference(start, gradients, rates, 0.1 / (0.05 if by == "schedule" else 1.0))
    np.testing.assert_allclose(model.weight.detach().numpy(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["adam", "sgd"])
@pytest.mark.parametrize("by", ["rate", "schedule"])
def test_weight_decay_goes_to_its_end_by_a_cosine(name: str, by: str) -> None:
    """Without a gradient only decay moves a weight: by (1 - rate * decay) in each step."""
    model = OneKernel()
    with torch.no_grad():
        model.weight.fill_(1.0)
    config = OptimizerConfig(name=name, weight_decay=0.04, weight_decay_end=0.4, decay_by=by)  # type: ignore[arg-type]
    optimizer = make_optimizer(learner_of(model), config, 0.5)
    expected = 1.0
    for step in range(8):
        model.weight.grad = torch.zeros(4, 3)
        set_rate(optimizer, 0.25, done=step / 8)
        optimizer.step()
        decay = 0.4 - 0.36 * (1 + np.cos(np.pi * step / 8)) / 2
        expected *= 1 - 0.25 * decay / (0.5 if by == "schedule" else 1.0)
    np.testing.assert_allclose(model.weight.detach().numpy(), np.full((4, 3), expected), rtol=1e-5)


@pytest.mark.parametrize("name", ["adam", "sgd", "muon"])
def test_a_weight_without_a_gradient_stays_and_begins_late(name: str) -> None:
    model = create("Ti/16", num_classes=3, image_size=32, depth=1)
    late = model.get_parameter("encoder.blocks.0.mlp.out.weight")
    start = late.detach().clone()
    config = OptimizerConfig(name=name, weight_decay=0.1)  # type: ignore[arg-type]
    optimizer = make_optimizer(learner_of(model), config, 0.1)
    for step in range(3):
        for weight in model.parameters():
            weight.grad = torch.ones_like(weight)
        late.grad = None if step < 2 else late.grad
        optimizer.step()
        assert torch.equal(late, start) == (step < 2)


def test_an_end_of_weight_decay_needs_a_beginning() -> None:
    with pytest.raises(ConfigError, match="weight_decay above 0"):
        OptimizerConfig(weight_decay_end=0.4)
    with pytest.raises(ConfigError, match="weight_decay_end is 0"):
        OptimizerConfig(weight_decay=0.1, weight_decay_end=0.0)


def names_in(group: dict[str, Any], model: nn.Module) -> list[str]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [names[id(parameter)] for parameter in group["params"]]


def test_only_kernels_decay_unless_all_are_asked_for() -> None:
    model = create("Ti/16", num_classes=3, image_size=32)
    groups = parameter_groups(learner_of(model), OptimizerConfig(weight_decay=0.1))
    decayed = {name for group in groups if group["weight_decay"] for name in names_in(group, model)}
    assert decayed == {name for name, weight in model.named_parameters() if is_kernel(name, weight)}
    assert not any(part in name for name in decayed for part in ("bias", "norm", "positions", "class_token"))
    everything = parameter_groups(learner_of(model), OptimizerConfig(weight_decay=0.1, decay_on="all"))
    assert [group["weight_decay"] for group in everything] == [0.1]


def test_layers_learn_more_slowly_the_deeper_they_lie() -> None:
    model = create("Ti/16", num_classes=3, image_size=32)
    groups = parameter_groups(learner_of(model), OptimizerConfig(layer_decay=0.5))
    factors = {name: group["rate_factor"] for group in groups for name in names_in(group, model)}
    assert factors["head.linear.weight"] == 1.0
    assert factors["encoder.blocks.11.mlp.out.weight"] == 0.5
    assert factors["encoder.blocks.0.mlp.out.weight"] == 0.5**12
    assert factors["embedding.projection.weight"] == 0.5**13
    assert model.depth_of("encoder.norm.weight") == 13


def test_every_parameter_is_in_exactly_one_group() -> None:
    for name in ("Ti/16", "R+Ti/16", "R50x1"):
        model = create(name, num_classes=3, image_size=32, device="meta")
        groups = parameter_groups(learner_of(model), OptimizerConfig(weight_decay=0.1, layer_decay=0.9))
        named = [name for group in groups for name in names_in(group, model)]
        assert sorted(named) == sorted(name for name, _ in model.named_parameters())


def test_clipping_leaves_a_small_gradient_and_shrinks_a_large_one() -> None:
    model = nn.Linear(2, 2)
    for scale, after in ((0.1, 0.1 * 6**0.5), (10.0, 1.0)):
        for weight in model.parameters():
            weight.grad = torch.full_like(weight, scale)
        norm = clip(model, 1.0)
        assert norm.item() == pytest.approx(scale * 6**0.5)
        left = torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]).norm()
        assert left.item() == pytest.approx(after, rel=1e-5)


def test_frozen_parameters_have_no_gradient_and_no_group() -> None:
    model = create("Ti/16", num_classes=3, image_size=32)
    freeze(model, ("embedding.*", "encoder.*"))
    learning = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert learning == {"head.linear.weight", "head.linear.bias"}
    groups = parameter_groups(learner_of(model), OptimizerConfig())
    assert {name for group in groups for name in names_in(group, model)} == learning


def test_freezing_nothing_that_exists_or_everything_is_refused() -> None:
    model = create("Ti/16", num_classes=3, image_size=32)
    with pytest.raises(ConfigError, match=r"no parameter is called 'embeding\.\*'"):
        freeze(model, ("embeding.*",))
    with pytest.raises(ConfigError, match="leave something to learn"):
        freeze(model, ("*",))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": "adamw"}, "Did you mean adam"),
        ({"beta1": 1.0}, "betas must be"),
        ({"clip_norm": 0.0}, "above 0"),
        ({"layer_decay": 0.0}, "above 0 and at most 1"),
        ({"rest_rate": 0.0}, "rest_rate is 0.0, but must be above 0"),
    ],
)
def test_what_does_not_optimise_is_refused(settings: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        OptimizerConfig(**settings)


@pytest.mark.parametrize("shape", [(1, 8, 8), (2, 16, 8), (3, 8, 24)])
def test_orthogonal_updates_have_the_directions_of_the_svd_and_singular_values_near_1(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonalise(matrices)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.6
    assert values.max() < 1.25
    inner = left.mT @ found @ right.mT  # diagonal if the directions are the same
    off = inner - torch.diag_embed(torch.diagonal(inner, dim1=1, dim2=2))
    assert off.abs().max() < 1e-4


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e12])
def test_small_singular_values_become_large_too_whatever_the_scale(scale: float) -> None:
    left, right = (
        torch.linalg.qr(torch.randn(32, 32, generator=torch.Generator().manual_seed(seed)))[0] for seed in (0, 1)
    )
    values = torch.logspace(-2.5, 0, 32)
    moved = orthogonalise((scale * left * values @ right)[None])
    assert torch.linalg.svdvals(moved).min() > 0.65
    assert torch.linalg.svdvals(moved).max() < 1.25
    assert torch.equal(orthogonalise(torch.zeros(1, 4, 8)), torch.zeros(1, 4, 8))


@pytest.mark.parametrize("kind", ["gaussian", "few directions", "orthogonal"])
def test_roundings_of_bfloat16_never_lift_singular_values_far_above_1(kind: str) -> None:
    draw = torch.Generator().manual_seed(0)
    matrices = torch.randn(4, 64, 128, generator=draw)
    if kind == "few directions":
        few = torch.randn(4, 64, 4, generator=draw) @ torch.randn(4, 4, 128, generator=draw)
        matrices = few + 1e-3 * matrices
    if kind == "orthogonal":
        matrices = torch.linalg.qr(matrices.mT)[0].mT
    short, exact = orthogonalise(matrices, torch.bfloat16), orthogonalise(matrices)
    assert short.dtype == torch.float32
    assert torch.linalg.svdvals(short).max() < 1.15
    largest = torch.linalg.svd(matrices, full_matrices=False)
    top = torch.einsum("mi,mio,mo->m", largest.U[:, :, 0], short, largest.Vh[:, 0])
    assert top.min() > 0.65  # the direction that gradients show most has about its full size, as in float32
    assert torch.einsum("mi,mio,mo->m", largest.U[:, :, 0], exact, largest.Vh[:, 0]).min() > 0.65


def test_muon_multiplies_in_bfloat16_only_where_the_processor_does_so_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for fast, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr("vitrail.base.products.bfloat16_is_faster", lambda fast=fast: fast)
        assert product_type(torch.zeros(1)) is expected
        assert product_type(torch.zeros(1, dtype=torch.float64)) is torch.float64


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float32])
def test_muon_moves_weights_by_products_of_the_chosen_type(
    precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(muon, "product_type", lambda _: precision)
    gradient = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    group = {"stacked": 1, "momentum": 0.0, "lr": 1.0, "weight_decay": 0.0}
    weight = torch.zeros(8, 16)
    move([Kernel(weight=weight, gradient=gradient, momentum=torch.zeros(8, 16), group=group)])
    torch.testing.assert_close(-weight, orthogonalise(gradient[None], precision)[0], rtol=0, atol=1e-7)
    assert not torch.equal(*(orthogonalise(gradient[None], kind) for kind in (torch.bfloat16, torch.float32)))


def test_each_polynomial_of_muon_is_the_best_for_what_the_one_before_it_leaves() -> None:
    """By Chebyshev: a best approximation by three terms has its largest error four times, in turn above and below."""
    low, high = 0.0026, 1.0
    for number, coefficients in enumerate(COEFFICIENTS, start=1):
        a, b, c = np.array(coefficients) / (SCALE if number == len(COEFFICIENTS) else 1)
        x = np.linspace(low, high, 400_001)
        error = a * x + b * x**3 + c * x**5 - 1
        largest = np.abs(error).max()
        signs = np.sign(error[np.abs(error) > 0.99 * largest])
        assert 1 + np.count_nonzero(np.diff(signs)) == 4
        low, high = 1 - largest, 1 + largest
    assert (low, high) == pytest.approx((0.76, 1.24), abs=0.005)


def test_muon_moves_the_blocks_kernels_by_orthogonal_matrices_and_the_rest_as_adam_does() -> None:
    model = create("Ti/16", num_classes=3, image_size=32, depth=2, seed=0)
    twin = create("Ti/16", num_classes=3, image_size=32, depth=2, seed=0)
    muon = make_optimizer(learner_of(model), OptimizerConfig(name="muon"), 1e-3)
    adam = make_optimizer(learner_of(twin), OptimizerConfig(), 1e-3)
    generator = torch.Generator().manual_seed(1)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for one, other in zip(model.parameters(), twin.parameters(), strict=True):
        one.grad = torch.randn(one.shape, generator=generator)
        other.grad = one.grad.clone()
    muon.step()
    adam.step()
    for (name, one), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        if name.startswith("encoder.blocks.") and is_kernel(name, one):
            moved = (one.detach() - before[name]) / 1e-2
            parts = moved.chunk(3) if "qkv" in name else [moved]
            for part in parts:
                scale = max(1.0, part.shape[0] / part.shape[1]) ** 0.5
                values = torch.linalg.svdvals(part) / scale
                assert values.median() > 0.6, name
                assert values.max() < 1.3, name
        else:
            assert torch.equal(one, other), name


@pytest.mark.parametrize(("name", "blocks", "rest"), [("muon", 4.0, 3.0), ("adam", 1.0, 1.0)])
def test_beside_muon_blocks_and_the_rest_have_rates_of_their_own(name: str, blocks: float, rest: float) -> None:
    learner = learner_of(create("Ti/16", num_classes=3, image_size=32, depth=2, seed=0))
    config = OptimizerConfig(name=name, muon_rate=4.0, rest_rate=3.0)  # type: ignore[arg-type]
    names = {id(weight): weight_name for weight_name, weight in learner.named_parameters()}
    for group in parameter_groups(learner, config):
        for weight in group["params"]:
            expected = blocks if names[id(weight)] in learner.matrices() else rest
            assert group["rate_factor"] == expected, names[id(weight)]


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_threads_that_share_muons_kernels_move_them_as_one_does(threads: int) -> None:
    def moved(threads: int) -> list[torch.Tensor]:
        draw = torch.Generator().manual_seed(0)
        shapes = [(48, 16), (16, 16), (32, 16), (16, 32)] * 3
        kernels = [torch.nn.Parameter(torch.randn(shape, generator=draw)) for shape in shapes]
        bias = torch.nn.Parameter(torch.ones(5))
        stacked, plain = kernels[0::4], [kernel for number, kernel in enumerate(kernels) if number % 4]
        groups = [{"params": stacked, "stacked": 3}, {"params": plain, "stacked": 1}, {"params": [bias], "stacked": 0}]
        muon = Muon([group | {"momentum": 0.95} for group in groups], lr=0.02, weight_decay=0.05, fused=True)
        muon.threads = threads
        for _ in range(3):
            for weight in (*kernels, bias):
                weight.grad = torch.randn(weight.shape, generator=draw)
            muon.step()
        return [weight.detach() for weight in (*kernels, bias)]

    for one, shared, again in zip(moved(1), moved(threads), moved(threads), strict=True):
        torch.testing.assert_close(shared, one, rtol=1e-5, atol=1e-6)
        assert torch.equal(shared, again)


def test_kernels_are_dealt_by_their_work() -> None:
    group = {"stacked": 1}
    sides = [64, 32, 32, 32, 16, 16]
    kernels = [
        Kernel(weight=torch.zeros(side, side), gradient=torch.zeros(1), momentum=torch.zeros(1), group=group)
        for side in sides
    ]
    assert [kernel.work for kernel in kernels] == [side**3 for side in sides]
    dealt = [[kernel.weight.shape[0] for kernel in share] for share in deal(kernels, 2)]
    assert dealt == [[64], [32, 32, 32, 16, 16]]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["adam", "sgd", "muon"])
def test_the_largest_rate_that_a_schedule_may_have_is_one_that_torch_can_multiply_by(name: str, fused: bool) -> None:
    config = OptimizerConfig(name=name, weight_decay=1.0, muon_rate=LARGEST_MUON_RATE)  # type: ignore[arg-type]
    learner = learner_of(create("Ti/16", num_classes=3, image_size=32, depth=1, seed=0))
    optimizer = make_optimizer(learner, config, LARGEST_RATE)
    for group in optimizer.param_groups:
        group["fused"] = fused
    for weight in learner.parameters():
        weight.grad = torch.ones_like(weight)
    set_rate(optimizer, LARGEST_RATE)
    optimizer.step()  # an overflow would be an error of torch
