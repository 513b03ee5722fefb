import math

import pytest

from tests.tiny import vit_config
from vitrail import ConfigError
from vitrail.model.build import configure
from vitrail.model.cost import cost
from vitrail.runs.plan import work_out

pytestmark = pytest.mark.usefixtures("unchecked")  # no tensors here, and the checks refuse 7 where 7.0 is meant

RUN = {
    "images": 1000,
    "epochs": 3,
    "batch": 64,
    "devices": 1,
    "device_flops": 1e12,
    "utilisation": 0.5,
    "memory": 2**30,
    "optimizer": "adam",
    "precision": "float32",
}


def make(config=None, **changes):
    return work_out(config or vit_config(), **RUN | changes)


def test_a_run_costs_six_flops_for_each_multiply_accumulate() -> None:
    planned = make()
    assert planned.exaflops * 1e18 == pytest.approx(6 * cost(vit_config()).macs * 3000)


def test_time_is_work_over_speed() -> None:
    planned = make(devices=4)
    seconds = 6 * cost(vit_config()).macs * 3000 / (1e12 * 0.5)
    assert planned.device_days == pytest.approx(seconds / 86_400)
    assert planned.days == pytest.approx(planned.device_days / 4)


@pytest.mark.parametrize(
    ("images", "epochs", "batch", "steps"),
    [(1000, 3, 64, 47), (1024, 1, 64, 16), (1025, 1, 64, 17), (1000, 0.5, 64, 8)],
)
def test_the_last_step_may_be_partial(images, epochs, batch, steps) -> None:
    assert make(images=images, epochs=epochs, batch=batch).steps == steps


@pytest.mark.parametrize(("optimizer", "values"), [("adam", 2), ("sgd", 1)])
def test_weights_gradients_and_optimiser_are_float32(optimizer, values) -> None:
    planned, parameters = make(optimizer=optimizer), cost(vit_config()).parameters
    assert planned.weights == planned.gradients == 4 * parameters
    assert planned.optimizer == 4 * values * parameters
    assert planned.fixed == 4 * (2 + values) * parameters


@pytest.mark.parametrize(("precision", "size"), [("float32", 4), ("bfloat16", 2)])
def test_activations_are_those_of_the_images_on_one_device(precision, size) -> None:
    planned = make(precision=precision, devices=8)
    need = cost(vit_config())
    assert planned.batch_per_device == 8
    assert planned.activations == size * need.activations * 8
    assert planned.checkpointed_activations == size * need.checkpointed_activations * 8


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_largest_batch_just_fits(optimizer) -> None:
    planned, need = make(optimizer=optimizer), cost(vit_config())
    for batch, each in (
        (planned.largest_batch, need.activations),
        (planned.largest_checkpointed_batch, need.checkpointed_activations),
    ):
        assert planned.fixed + 4 * each * batch <= 2**30 < planned.fixed + 4 * each * (batch + 1)
    assert planned.largest_checkpointed_batch > planned.largest_batch


def test_a_model_that_does_not_fit_has_no_batch() -> None:
    assert make(memory=1000).largest_batch == 0


def test_the_papers_largest_run_takes_the_papers_work() -> None:
    planned = make(configure("H/14"), images=303_000_000, epochs=14, batch=4096, device_flops=61.5e12, utilisation=0.33)
    assert planned.exaflops == pytest.approx(4262, rel=0.02)
    assert planned.steps == math.ceil(303_000_000 * 14 / 4096)
    assert planned.device_days == pytest.approx(2500, rel=0.05)


def test_a_batch_that_does_not_split_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"batch of 64 does not split over 3 devices; choose a multiple of 3"):
        make(devices=3)
