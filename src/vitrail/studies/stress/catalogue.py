"""Every stress test, by group, with its strengths."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from vitrail.base.errors import ConfigError, InputError, did_you_mean
from vitrail.data.stress.corruptions import check_severity, corrupt
from vitrail.data.stress.filters import high_pass, low_pass, without_texture
from vitrail.data.stress.published import NAMES, SEVERITIES, CorruptionName
from vitrail.data.stress.views import expose, zoom
from vitrail.model.patches import Size, size_text
from vitrail.studies.stress import changes
from vitrail.studies.stress.changes import Level
from vitrail.studies.stress.stress_test import GROUPS, StressTest

TILES = (2, 4, 8, 16)
FEWEST_PIXELS = 8
"""Smaller images have no tiles, blurs or patches to speak of."""


def catalogue(image_size: Size, *, severities: Sequence[int] = SEVERITIES, budget: Level = 8) -> tuple[StressTest, ...]:
    """Return every test for images of one size, in the order of a report."""
    if min(image_size) < FEWEST_PIXELS:
        raise InputError(
            f"the model takes images of {size_text(image_size)} pixels, which are too small for the grid of tiles and "
            f"patches; stress needs at least {FEWEST_PIXELS}x{FEWEST_PIXELS}."
        )
    if not isinstance(budget, int | float) or not 0 < budget <= 255:
        raise ConfigError(f"budget is {budget!r}, but must be above 0 and at most 255: levels of a pixel.")
    chosen = tuple(sorted({check_severity(severity) for severity in severities}))
    if not chosen:
        raise ConfigError("severities is empty, but must name at least one of 1 to 5.")
    corruptions = (replace(_corruption_test(name), levels=chosen) for name in NAMES)
    return (
        *_occlusion_tests(),
        *_shuffle_tests(image_size),
        *_filter_tests(image_size),
        *corruptions,
        *_view_tests(),
        *_attack_tests(budget),
        _resolution_test(),
    )


def select(words: Sequence[str], tests: Sequence[StressTest]) -> tuple[StressTest, ...]:
    """Return the tests that names of groups or of tests stand for, in the order of a report; `all` is every one."""
    known = ("all", *GROUPS, *(test.name for test in tests))
    for word in words:
        if word not in known:
            raise ConfigError(
                f"there is no stress {word!r}; there are the groups {', '.join(GROUPS)}, and their tests, such as "
                f"{tests[0].name} or {NAMES[0]}.{did_you_mean(word, known)}"
            )
    chosen = tuple(test for test in tests if {"all", test.group, test.name} & set(words))
    if not chosen:
        raise ConfigError(f"tests is empty, but must name one of {', '.join(GROUPS)}, or all.")
    return chosen


def _occlusion_tests() -> tuple[StressTest, ...]:
    occlusion = partial(
        StressTest,
        group="occlusion",
        axis="share of the patches that is covered",
        levels=(0.1, 0.25, 0.5, 0.65, 0.8, 0.9),
        start=0,
        shares=True,
    )
    return (
        occlusion(name="occlusion-random", title="Covered at random", apply=changes.cover_random),
        occlusion(
            name="occlusion-salient", title="Most salient patches first", apply=changes.cover_salient, salient=True
        ),
        occlusion(
            name="occlusion-background",
            title="Least salient patches first",
            apply=changes.cover_background,
            salient=True,
        ),
    )


def _shuffle_tests(image_size: Size) -> tuple[StressTest, ...]:
    tiles = tuple(count for count in TILES if count <= min(image_size))
    return (
        StressTest(
            name="shuffle",
            group="shuffle",
            title="Shuffled tiles",
            axis="tiles along each side",
            levels=tiles,
            start=1,
            apply=changes.shuffle,
        ),
        StressTest(
            name="grid",
            group="shuffle",
            title="Permuted patches",
            axis="share of the patches that change places",
            levels=(0.25, 0.5, 0.75, 1.0),
            start=0,
            shares=True,
            apply=changes.permute,
        ),
    )


def _filter_tests(image_size: Size) -> tuple[StressTest, ...]:
    unit = max(round(min(image_size) / 96), 1)
    return (
        StressTest(
            name="texture",
            group="texture",
            title="Texture removed",
            axis="radius in which texture becomes flat, in pixels",
            levels=tuple(unit * step for step in (1, 2, 3, 4, 5)),
            start=0,
            apply=lambda subject, level: without_texture(subject.pixels, int(level)),
        ),
        StressTest(
            name="low-pass",
            group="frequency",
            title="Low-pass",
            axis="highest frequency that is kept",
            levels=(0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0),
            start=1.42,
            apply=lambda subject, level: low_pass(subject.pixels, level),
        ),
        StressTest(
            name="high-pass",
            group="frequency",
            title="High-pass",
            axis="lowest frequency that is kept",
            levels=(0.05, 0.1, 0.2, 0.3, 0.5),
            start=0,
            apply=lambda subject, level: high_pass(subject.pixels, level),
        ),
    )


def _corruption_test(name: CorruptionName) -> StressTest:
    return StressTest(
        name=name,
        group="corruptions",
        title="JPEG" if name == "jpeg" else name.replace("-", " ").capitalize(),
        axis="severity",
        levels=SEVERITIES,
        start=0,
        apply=lambda subject, level: corrupt(subject.pixels, name, int(level), subject.draws(name)),
    )


def _view_tests() -> tuple[StressTest, ...]:
    return (
        StressTest(
            name="rotation",
            group="views",
            title="Turned to the left or right",
            axis="degrees",
            levels=(10, 20, 30, 45, 60, 90),
            start=0,
            apply=changes.turn,
        ),
        StressTest(
            name="scale",
            group="views",
            title="Smaller or larger",
            axis="times its size",
            levels=(0.4, 0.6, 0.8, 1.25, 1.6, 2.0),
            start=1,
            apply=lambda subject, level: zoom(subject.pixels, level, subject.stage.colour),
        ),
        StressTest(
            name="exposure",
            group="views",
            title="Darker or brighter",
            axis="times its light",
            levels=(0.25, 0.5, 0.75, 1.5, 2.0, 3.0),
            start=1,
            apply=lambda subject, level: expose(subject.pixels, level),
        ),
    )


def _attack_tests(budget: Level) -> tuple[StressTest, ...]:
    return (
        StressTest(
            name="pgd",
            group="attacks",
            title="PGD attack",
            axis="largest change of a value, in levels of 255",
            levels=tuple(budget * share for share in (0.125, 0.25, 0.5, 1)),
            start=0,
            kind="attack",
        ),
        StressTest(
            name="patch",
            group="attacks",
            title="Adversarial patch",
            axis="share of the image that the patch covers",
            levels=(0.01, 0.025, 0.05, 0.1),
            start=0,
            shares=True,
            kind="attack",
        ),
    )


def _resolution_test() -> StressTest:
    return StressTest(
        name="resolution",
        group="resolution",
        title="Other sizes than trained",
        axis="times the size that it was trained at",
        levels=(0.5, 0.75, 1.25, 1.5, 2.0),
        start=1,
        kind="resolution",
    )
