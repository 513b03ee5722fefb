import pytest

import vitrail
from tests.tiny import vit_config
from vitrail import ConfigError

pytestmark = pytest.mark.usefixtures("unchecked")


def test_the_papers_run_stands_beside_the_papers_figures() -> None:
    plan = vitrail.plan("L/16", preset="jft300m")
    assert (plan.epochs, plan.images) == (14, 303_000_000)
    assert plan.exaflops == pytest.approx(1567, rel=0.02)  # Table 6
    assert (plan.paper.exaflops, plan.paper.tpuv3_core_days) == (1567, 680)
    assert "paper: 680 core-days, Table 2" in repr(plan)
    assert "paper: 680 core-days, Table 2" in plan._repr_html_()


def test_what_is_given_wins_over_the_preset_and_the_paper_is_silent_about_other_runs() -> None:
    plan = vitrail.plan("L/16", preset="jft300m", epochs=3, batch=1024, devices=8)
    assert (plan.epochs, plan.batch_per_device) == (3, 128)
    assert plan.paper == vitrail.plan("B/16").paper


def test_a_config_and_a_model_keep_their_own_size() -> None:
    config = vit_config()
    plan = vitrail.plan(config, images=1000, epochs=2, batch=10)
    assert plan.steps == 200
    assert plan.cost == vitrail.cost(config)
    assert plan.weights == 4 * plan.cost.parameters
    assert vitrail.plan(vitrail.build(config, seed=0), images=1000, epochs=2, batch=10) == plan
    assert config.summary in repr(plan)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs is 0, but must be above 0"),
        ({"memory": float("nan")}, "memory is nan"),
        ({"epochs": 1e308}, "epochs is 1e\\+308, but must be above 0, from 1e-30 to 1e\\+30"),
        ({"device_flops": 1e-320}, "device_flops is"),
        ({"utilisation": 33}, "utilisation is 33, but must be above 0 and at most 1"),
        ({"preset": "jft"}, "there is no preset 'jft'.*Did you mean jft300m"),
    ],
)
def test_settings_that_make_no_run_are_named(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        vitrail.plan("B/16", **settings)


def test_a_length_that_the_paper_does_not_have_can_be_given() -> None:
    with pytest.raises(ConfigError, match="`epochs`"):
        vitrail.plan("S/16", preset="jft300m")
    assert vitrail.plan("S/16", preset="jft300m", epochs=7).epochs == 7
