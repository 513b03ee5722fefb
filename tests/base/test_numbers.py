import numpy as np
import pytest

from vitrail.base.errors import ConfigError
from vitrail.base.numbers import check_whole


@pytest.mark.parametrize("value", [1, 7, np.int64(7), 10**9])
def test_whole_numbers_within_the_bounds_pass(value: int) -> None:
    assert check_whole("batch", value) == value


@pytest.mark.parametrize("value", [0, -1, 1.0, 1.5, "3", None, True, float("nan"), float("inf"), 10**9 + 1, 10**300])
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(
        ConfigError, match=r"`batch` is .*, but must be a whole number (of at least 1|from 1 to 1,000,000,000)\."
    ):
        check_whole("batch", value)
