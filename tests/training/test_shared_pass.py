"""A network in pieces gives the outputs and gradients of all images at once; so do the learners around it."""

from pathlib import Path

import pytest
import torch

from tests.selfsup.views import OBJECTIVES, views_config, views_run
from tests.tiny import hybrid_config, perturbed, vit_config
from tests.training.making import made_loop
from vitrail.training import shared_pass
from vitrail.training.shared_pass import pass_in_shares


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("config", [vit_config(), hybrid_config()], ids=["vit", "hybrid"])
def test_pieces_give_the_outputs_and_gradients_of_all_images(
    config, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_pass, "PIECE", 7)
    model = perturbed(config).double()
    images = torch.randn(25, 3, *config.image_size, dtype=torch.float64)
    weights, factors = list(model.parameters()), torch.randn(25, config.feature_width, dtype=torch.float64)
    whole = model.features(images)
    pieces = pass_in_shares(model.features, images, weights, threads=threads)
    torch.testing.assert_close(pieces, whole, atol=1e-12, rtol=1e-10)
    expected = torch.autograd.grad((whole * factors).sum(), weights, allow_unused=True)
    gradients = torch.autograd.grad((pieces * factors).sum(), weights, allow_unused=True)
    for weight, ours, theirs in zip(weights, gradients, expected, strict=True):
        assert (ours is None) == (theirs is None)  # the head is not used
        if ours is not None:
            assert ours.stride() == weight.stride()
            torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-8)


def test_pieces_compute_in_the_types_of_autocast() -> None:
    linear = torch.nn.Linear(4, 4)
    images, slopes = torch.randn(16, 4), torch.randn(16, 4)
    with torch.autocast("cpu", torch.bfloat16):
        passed = pass_in_shares(linear, images, list(linear.parameters()), threads=2)
        expected = linear(images)
    assert passed.dtype == torch.bfloat16
    assert torch.equal(passed, expected)
    ours, theirs = (torch.autograd.grad((part * slopes).sum(), linear.weight)[0] for part in (passed, expected))
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


def test_each_piece_is_passed_in_a_thread_with_one_core_and_none_has_more_than_its_share() -> None:
    seen = []

    def network(images: torch.Tensor) -> torch.Tensor:
        seen.append((len(images), torch.get_num_threads(), torch.is_grad_enabled()))
        return images.flatten(1)

    with torch.no_grad():
        passed = pass_in_shares(network, torch.arange(16.0)[:, None], [], threads=2)
    assert passed.flatten().tolist() == list(range(16))
    assert seen == [(8, 1, False), (8, 1, False)]


@pytest.mark.parametrize(("threads", "count"), [(1, 40), (5, 40), (64, 40), (2, 15), (4, 31)])
def test_other_numbers_of_threads_and_few_images_are_passed_at_once(threads: int, count: int) -> None:
    seen = []
    images = torch.randn(count, 2)
    passed = pass_in_shares(lambda images: (seen.append(len(images)), images)[1], images, [], threads=threads)
    assert seen == [count]
    assert passed is images


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_step_in_shares_is_the_step_of_the_whole_batch(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, gradients, shared = [], [], []
    alone = shared_pass.each_alone
    monkeypatch.setattr(shared_pass, "each_alone", lambda *given: (shared.append(len(steps)), alone(*given))[1])
    for threads in (1, 2):
        loop = made_loop(views_run(tmp_path / str(threads), views_config(kind)))
        loop.state.learner.threads = threads
        step = loop.take(next(iter(loop.batches(0))), 1e-2)
        assert step is not None
        steps.append(step)
        gradients.append([weight.grad for weight in loop.state.learner.parameters()])
    assert set(shared) == {1}  # the second step, and not the first
    assert steps[0].loss == pytest.approx(steps[1].loss, rel=1e-6)
    assert steps[0].sums == pytest.approx(steps[1].sums, rel=1e-5)
    for ours, theirs in zip(*gradients, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_run_on_one_processor_lets_its_threads_share_the_pass(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert made_loop(views_run(tmp_path, views_config(kind))).state.learner.threads == 2
