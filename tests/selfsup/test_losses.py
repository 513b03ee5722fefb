"""The losses and heads of DINO and MoCo v3, beside NumPy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.reference import views as reference
from vitrail.base.ranks import Ranks
from vitrail.selfsup.batch_norm import BatchNorm
from vitrail.selfsup.dino_head import DinoHead
from vitrail.selfsup.dino_loss import dino_loss, entropy, teacher_answers, temperature_at
from vitrail.selfsup.features import spread
from vitrail.selfsup.moco import make_head
from vitrail.selfsup.moco_loss import info_nce
from vitrail.selfsup.momentum import follow, momentum_at

rng = np.random.default_rng(0)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array, dtype=torch.float32)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 4), st.integers(1, 5), st.integers(2, 30), st.sampled_from([0.04, 0.07, 0.5]))
def test_dinos_loss_is_the_mean_over_pairs_of_different_views(
    local: int, batch: int, prototypes: int, temperature: float
) -> None:
    student, teacher = rng.normal(size=(2 + local, batch, prototypes)), rng.normal(size=(2, batch, prototypes))
    centre = rng.normal(size=prototypes)
    answers = torch.stack([teacher_answers(tensor(scores), tensor(centre), temperature) for scores in teacher])
    loss = dino_loss(tensor(student), answers, 0.1).item()
    assert loss == pytest.approx(reference.dino_loss(student, teacher, centre, 0.1, temperature), rel=1e-5, abs=1e-5)


def test_the_gradient_of_dinos_loss_is_that_of_the_pairs() -> None:
    student = torch.randn(4, 3, 7, dtype=torch.float64, requires_grad=True)
    answers = torch.randn(2, 3, 7).softmax(2)
    (quick,) = torch.autograd.grad(dino_loss(student, answers, 0.1), student)
    terms = [
        -(answers[seen] * (student[view] / 0.1).log_softmax(1)).sum(1).mean()
        for seen in range(2)
        for view in range(4)
        if view != seen
    ]
    (slow,) = torch.autograd.grad(torch.stack(terms).mean(), student)
    torch.testing.assert_close(quick, slow, rtol=1e-4, atol=1e-5)


def test_dinos_head_is_an_mlp_a_length_of_one_and_cosines() -> None:
    head = DinoHead(6, hidden=10, bottleneck=4, prototypes=9)
    features = rng.normal(size=(5, 6))
    layers = [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in head.mlp
        if isinstance(layer, nn.Linear)
    ]
    expected = reference.dino_head(features, layers, head.prototypes.weight.detach().numpy())
    scores = head(tensor(features)).detach().numpy()
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert np.abs(scores).max() <= 1 + 1e-6
    with torch.no_grad():
        head.prototypes.weight *= 7.5  # norms are fixed at 1
    np.testing.assert_allclose(head(tensor(features)).detach().numpy(), expected, atol=1e-5)


def test_entropy_is_a_share_of_log_k() -> None:
    assert entropy(torch.full((2, 8), 1 / 8)).tolist() == pytest.approx([1.0, 1.0])
    assert entropy(torch.eye(4)).tolist() == [0.0] * 4
    p = rng.dirichlet(np.ones(5))
    assert entropy(tensor(p)).item() == pytest.approx(-(p * np.log(p)).sum() / math.log(5), rel=1e-5)


def test_temperature_and_momentum_follow_the_steps() -> None:
    assert [temperature_at(0.04, 0.07, 0.5, done) for done in (0.0, 0.25, 0.5, 0.9)] == pytest.approx(
        [0.04, 0.055, 0.07, 0.07]
    )
    assert temperature_at(0.04, 0.07, 0.0, 0.0) == 0.07
    releases = 1 + 0.5 * (0.996 - 1) * (1 + np.cos(np.pi * np.arange(10) / 10))
    assert [momentum_at(0.996, step / 10) for step in range(10)] == pytest.approx(list(releases), rel=1e-12)
    assert momentum_at(0.9, 1.0) == 1.0


def test_a_slow_copy_moves_by_its_share() -> None:
    slow, quick = [torch.zeros(3), torch.ones(2, 2)], [torch.ones(3), torch.full((2, 2), 3.0)]
    follow(slow, quick, 0.75)
    assert [weight.flatten()[0].item() for weight in slow] == [0.25, 1.5]
    follow(slow, quick, 1.0)
    assert slow[0][0].item() == 0.25


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(2, 9), st.sampled_from([0.07, 0.2, 1.0]))
def test_info_nce_is_the_releases(batch: int, width: int, temperature: float) -> None:
    queries, keys = rng.normal(size=(batch, width)), rng.normal(size=(batch, width))
    loss, right = info_nce(tensor(queries), tensor(keys), temperature)
    assert loss.item() == pytest.approx(reference.contrastive_loss(queries, keys, temperature), rel=1e-5, abs=1e-6)
    cosines = reference.unit(queries) @ reference.unit(keys).T
    assert right.item() == (cosines.argmax(1) == np.arange(batch)).sum()


def test_queries_of_a_rank_have_their_keys_after_those_of_the_ranks_before_it() -> None:
    queries, keys = torch.randn(6, 5), torch.randn(6, 5)
    whole, _ = info_nce(queries, keys, 0.2)
    halves = [info_nce(queries[start : start + 3], keys, 0.2, first=start)[0] for start in (0, 3)]
    torch.testing.assert_close(whole, torch.stack(halves).mean())


@pytest.mark.parametrize("layers", [2, 3])
def test_mocos_heads_normalise_after_each_layer_and_the_last_learns_no_scale(layers: int) -> None:
    head = make_head((4, *[7] * (layers - 1), 5), Ranks())
    norms = [module for module in head if isinstance(module, BatchNorm)]
    assert [norm.weight is None for norm in norms] == [False] * (layers - 1) + [True]
    with torch.no_grad():
        for norm in norms[:-1]:
            assert norm.weight is not None
            norm.weight.uniform_(0.5, 2)
            norm.bias.normal_()
    kernels = [module.weight for module in head if isinstance(module, nn.Linear)]
    assert len(kernels) == layers
    written = [
        tuple(None if value is None else value.detach().double().numpy() for value in (kernel, norm.weight, norm.bias))
        for kernel, norm in zip(kernels, norms, strict=True)
    ]
    rows = rng.normal(size=(8, 4))
    np.testing.assert_allclose(head(tensor(rows)).detach().numpy(), reference.moco_head(rows, written), atol=2e-5)


def test_spread_is_the_deviation_of_features_of_length_one() -> None:
    features = rng.normal(size=(40, 6)) * rng.uniform(0.1, 9, size=(40, 1))
    expected = np.sqrt(reference.unit(features).var(0).sum())
    assert spread(tensor(features), Ranks()).item() == pytest.approx(expected, rel=1e-5)
    same = np.outer(rng.uniform(1, 2, 20), rng.normal(size=6))
    assert spread(tensor(same), Ranks()).item() < 1e-3
