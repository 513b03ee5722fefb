"""Settling fine-tuning: a plan that the rule, a recipe or keywords make, and a stored one that is resumed."""

from dataclasses import replace
from pathlib import Path

import pytest

import vitrail
from tests.training.making import made_archive
from vitrail.base.errors import ConfigError
from vitrail.base.ranks import Ranks
from vitrail.model.config import ViTConfig
from vitrail.verbs.finetune import FinetuneRequest, settle_finetuning, stored_execution


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> FinetuneRequest:
    folder = tmp_path_factory.mktemp("files")
    config = ViTConfig(dim=8, depth=1, num_heads=2, mlp_dim=8, patch_size=(4, 4), image_size=(8, 8), num_classes=5)
    start = vitrail.save(vitrail.build(config, seed=0), folder / "tiny.safetensors")
    return FinetuneRequest(data=made_archive(folder / "made.npz"), start=start, batch=6, device="cpu")


def test_the_rule_decides_what_was_not_asked_for(request_: FinetuneRequest) -> None:
    work = settle_finetuning(request_, Ranks())
    assert (work.plan.rates, work.plan.runs, work.plan.trainings) == ((0.0003,), 1, 1)  # of a small model
    assert (work.plan.base.steps, work.plan.base.schedule.peak) == (300, 0.0003)
    assert work.plan.base.optimizer.name == "muon"
    assert work.plan.base.start is not None
    assert (work.plan.base.data.role, work.plan.base.data.split_seed) == ("transfer", 0)
    assert work.folder.path == Path("runs") / "made.npz-from-tiny"
    assert work.sweep() == []
    work = settle_finetuning(replace(request_, rates=(0.001, 0.002)), Ranks())
    assert [cell.name for cell in work.sweep()] == ["rate 0.001", "rate 0.002"]


def test_keywords_choose_rates_seeds_and_size(request_: FinetuneRequest) -> None:
    asked = replace(request_, rates=[0.1, 0.2], runs=3, image_size=16, frozen=True, steps=4)
    plan = settle_finetuning(asked, Ranks()).plan
    assert (plan.rates, plan.runs, plan.base.steps, plan.base.model.image_size) == ((0.1, 0.2), 3, 4, (16, 16))
    assert plan.base.optimizer.frozen
    assert settle_finetuning(replace(request_, quick=True, frozen=True), Ranks()).plan.rates == (pytest.approx(0.003),)
    assert settle_finetuning(replace(request_, learning_rate=0.5), Ranks()).plan.rates == (0.5,)


def test_a_stored_plan_is_resumed_with_its_own_settings(request_: FinetuneRequest, tmp_path: Path) -> None:
    work = settle_finetuning(replace(request_, out=tmp_path / "run", rates=(0.1,)), Ranks())
    assert work.enter()
    resume = FinetuneRequest(resume=tmp_path / "run", workers=1, skip_broken="1%")
    again = settle_finetuning(resume, Ranks())
    base = work.plan.base
    assert again.plan == replace(
        work.plan,
        base=replace(
            base,
            execution=replace(base.execution, workers=1),
            data=replace(base.data, skip_broken="1%"),
        ),
    )
    assert stored_execution(resume) == base.execution
    with pytest.raises(ConfigError, match=r"`schedule\.shape` cannot change a stored run; give `resume` alone"):
        settle_finetuning(replace(resume, schedule="linear"), Ranks())
    with pytest.raises(ConfigError, match="`rates` cannot change a stored run"):
        settle_finetuning(replace(resume, rates=(0.2,)), Ranks())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": None}, "`data` is missing"),
        ({"rates": (0.1,), "quick": True}, "`rates` are tried on a dev split"),
        ({"frozen": True, "freeze": ("head.*",)}, "`freeze` has nothing to add"),
        ({"patience": 2}, "leave `patience` and `evaluate_every` out"),
        ({"settings": {"schedule.peak": 0.5}}, "give `rates`, or one `learning_rate`"),
    ],
)
def test_what_cannot_be_is_refused_by_the_names_of_settings(
    changes: dict[str, object], said: str, request_: FinetuneRequest
) -> None:
    with pytest.raises(ConfigError, match=said):
        settle_finetuning(replace(request_, **changes), Ranks())  # type: ignore[arg-type]


def test_an_empty_start_is_not_the_backbone(tmp_path: Path) -> None:
    with pytest.raises(vitrail.VitrailError, match="empty"):
        vitrail.finetune("sample", start="", steps=1, out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
