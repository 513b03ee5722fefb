"""Bounds: what is above is refused in a sentence that says how to allow more."""

import pytest

from vitrail import ConfigError, InputError
from vitrail.base.limits import ARRAY_GROWTH, LIMITS, TEXT_BYTES, check_unpacked


def test_what_is_above_a_bound_is_refused_with_the_name_of_the_variable_that_sets_another() -> None:
    TEXT_BYTES.check(2**25, "list.txt")
    with pytest.raises(InputError, match=r"list\.txt has 33,554,433 bytes, .* 33,554,432 .* VITRAIL_LIMIT_TEXT_BYTES"):
        TEXT_BYTES.check(2**25 + 1, "list.txt")


def test_the_environment_sets_another_bound(monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_TEXT_BYTES", "10")
    with pytest.raises(InputError, match=r"more than the 10 "):
        TEXT_BYTES.check(11, "list.txt")


@pytest.mark.parametrize("text", ["", "0", "-1", "1e9", "many", "9" * 30])
def test_a_bound_that_is_not_a_number_is_refused(monkeypatch, text) -> None:
    monkeypatch.setenv("VITRAIL_LIMIT_TEXT_BYTES", text)
    with pytest.raises(ConfigError, match="VITRAIL_LIMIT_TEXT_BYTES"):
        TEXT_BYTES.check(1, "list.txt")


def test_a_small_file_may_unpack_to_something_and_a_large_one_to_a_multiple() -> None:
    check_unpacked("x.npz", 1000, 256 * 2**20, ARRAY_GROWTH, InputError)
    check_unpacked("x.npz", 2**30, 100 * 2**30, ARRAY_GROWTH, InputError)
    with pytest.raises(InputError, match=r"x\.npz has 1\.00 GiB and would unpack to 100\.00 GiB, more than 100 times"):
        check_unpacked("x.npz", 2**30, 100 * 2**30 + 1, ARRAY_GROWTH, InputError)


def test_no_two_bounds_share_a_name() -> None:
    assert len({limit.variable for limit in LIMITS}) == len(LIMITS)
