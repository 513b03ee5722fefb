import itertools

import numpy as np
import pytest
import torch

from tests.studies.stress.making import SIZE, TESTS, contestant, measuring, scenes, stage
from vitrail.base.errors import ConfigError, InputError
from vitrail.data.stress.published import NAMES
from vitrail.studies.stress.catalogue import catalogue, select
from vitrail.studies.stress.claims import CLAIMS
from vitrail.studies.stress.measure import stressed
from vitrail.studies.stress.stage import Subject
from vitrail.studies.stress.stress_test import GROUPS

PIXEL_TESTS = [name for name, test in TESTS.items() if test.kind == "pixels"]


def subjects(names: list[str]) -> list[Subject]:
    work = measuring([contestant()], [TESTS[name] for name in names])
    data = scenes()
    return work.subjects(range(len(data)), [data.image(index) for index in range(len(data))])


@pytest.mark.parametrize("name", PIXEL_TESTS)
def test_every_level_changes_images_and_the_same_way_each_time(name) -> None:
    subject, other = subjects([name])[:2]
    for level in TESTS[name].levels:
        changed = stressed(subject, TESTS[name], level)
        assert changed.shape == subject.pixels.shape
        assert changed.dtype == torch.uint8
        assert torch.equal(changed, stressed(subject, TESTS[name], level))
    assert not torch.equal(changed, subject.pixels)
    assert not torch.equal(changed, stressed(other, TESTS[name], level))


@pytest.mark.parametrize("name", ["occlusion-random", "occlusion-salient", "occlusion-background"])
def test_more_is_covered_among_less_and_all_of_it_is_one_colour(name) -> None:
    subject = subjects([name])[0]
    colour = torch.tensor(subject.stage.colour, dtype=torch.uint8)[:, None, None]
    covered = [stressed(subject, TESTS[name], share) == colour for share in (0.25, 0.5, 0.9)]
    for less, more in itertools.pairwise(covered):
        assert (more | ~less).all()
    assert covered[1].all(dim=0).float().mean() == pytest.approx(0.5, abs=0.05)
    assert torch.equal(stressed(subject, TESTS[name], 1.0), colour.expand(3, *SIZE))
    assert torch.equal(stressed(subject, TESTS[name], 0.0), subject.pixels)


def test_what_is_salient_for_one_is_background_for_the_other() -> None:
    subject = subjects(["occlusion-salient"])[0]
    colour = torch.tensor(subject.stage.colour, dtype=torch.uint8)[:, None, None]
    salient = (stressed(subject, TESTS["occlusion-salient"], 0.5) == colour).all(dim=0)
    background = (stressed(subject, TESTS["occlusion-background"], 0.5) == colour).all(dim=0)
    assert (salient ^ background).float().mean() > 0.95


def test_a_model_without_positions_does_not_see_its_patches_permuted() -> None:
    """Self-attention is blind to order: a truth that no permutation of other tiles has."""
    blind = contestant(positions="none")
    subject = Subject(stage=stage(blind), pixels=subjects(["grid"])[0].pixels, row=3)
    clean = blind.scores(subject.pixels[None])
    for share in TESTS["grid"].levels:
        permuted = stressed(subject, TESTS["grid"], share)
        assert not torch.equal(permuted, subject.pixels)
        torch.testing.assert_close(blind.scores(permuted[None]), clean, atol=1e-5, rtol=0)
    assert not torch.allclose(blind.scores(stressed(subject, TESTS["shuffle"], 8)[None]), clean, atol=1e-3)


def test_groups_and_names_are_selected_in_the_order_of_a_report() -> None:
    tests = catalogue(SIZE)
    assert select(["all"], tests) == tests
    assert [test.name for test in select(["pgd", "shuffle"], tests)] == ["shuffle", "grid", "pgd"]
    assert [test.name for test in select(["corruptions"], tests)] == list(NAMES)
    assert {test.group for test in tests} == set(GROUPS)


def test_every_claim_has_its_test() -> None:
    for claim in CLAIMS:
        tests = [test for test in TESTS.values() if claim.test in (test.name, test.group)]
        assert tests
        assert claim.level is None or claim.level in tests[0].levels


def test_levels_follow_the_settings() -> None:
    tests = {test.name: test for test in catalogue((224, 224), severities=[5, 3], budget=2)}
    assert tests["fog"].levels == (3, 5)
    assert tests["pgd"].levels == (0.25, 0.5, 1, 2)
    assert tests["texture"].levels == (2, 4, 6, 8, 10)
    assert {test.name: test for test in catalogue((8, 8))}["shuffle"].levels == (2, 4, 8)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"image_size": (4, 32)}, InputError, "4x32 pixels, which are too small for the grid of tiles"),
        ({"severities": [0]}, ConfigError, "severity is 0, but must be a whole number of at least 1"),
        ({"severities": [6]}, ConfigError, "severity is 6, but must be a whole number of at most 5"),
        ({"severities": []}, ConfigError, "severities is empty"),
        ({"budget": 0}, ConfigError, "budget is 0, but must be above 0"),
        ({"budget": float("nan")}, ConfigError, "budget is nan"),
    ],
)
def test_impossible_settings_are_one_sentence(settings, error, sentence) -> None:
    with pytest.raises(error, match=sentence):
        catalogue(**{"image_size": SIZE} | settings)


def test_a_stress_that_does_not_exist_is_refused_with_the_names_near_it() -> None:
    with pytest.raises(ConfigError, match=r"there is no stress 'oclusion'.*Did you mean occlusion"):
        select(["oclusion"], catalogue(SIZE))
    with pytest.raises(ConfigError, match="tests is empty"):
        select([], catalogue(SIZE))


def test_rows_decide_the_draws_and_not_the_place_in_a_batch() -> None:
    data = scenes()
    work = measuring([contestant()], [TESTS["gaussian-noise"]], dataset=data.take([5, 9]))
    alone = work.subjects([1], [data.image(9)])[0]
    among = subjects(["gaussian-noise"])[9]
    assert torch.equal(stressed(alone, TESTS["gaussian-noise"], 3), stressed(among, TESTS["gaussian-noise"], 3))
    assert np.array_equal(alone.draws("x").uniform("y", 3), among.draws("x").uniform("y", 3))
