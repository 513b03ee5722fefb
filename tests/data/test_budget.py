import pytest

from vitrail import ConfigError, InputError
from vitrail.data.budget import Budget

LOST = [(f"{number}.jpg", "it is cut off") for number in range(12)]


@pytest.mark.parametrize(
    ("text", "total", "allowed"),
    [("0", 1000, 0), ("5", 10, 5), ("1%", 1000, 10), ("1%", 99, 0), ("0.5%", 1000, 5), ("100%", 7, 7), (" 3 ", 9, 3)],
)
def test_a_budget_is_a_number_or_a_share_rounded_down(text, total, allowed) -> None:
    assert Budget.parse(text).allowed(total) == allowed


@pytest.mark.parametrize("text", ["", "%", "many", "1.5", "-1", "-1%", "101%", "nan%", "1e3"])
def test_what_is_no_budget_is_refused(text) -> None:
    with pytest.raises(ConfigError, match="budget"):
        Budget.parse(text)


def test_within_the_budget_nothing_happens() -> None:
    Budget.parse("12").spend(LOST, 20)
    Budget.parse("0").spend([], 20)


def test_over_the_budget_the_first_are_named_and_the_rest_counted() -> None:
    with pytest.raises(InputError) as error:
        Budget.parse("1%").spend(LOST, 1000, where="photos")
    message = str(error.value)
    assert message.startswith("photos: 12 of 1000 images are broken or missing, and 10 may be: 0.jpg (it is cut off)")
    assert "9.jpg" in message
    assert "10.jpg" not in message
    assert "and 2 more" in message


@pytest.mark.parametrize(("lost", "total"), [(1, 3), (1, 1000), (12, 12), (3, 299), (1, 100)])
def test_the_share_that_the_message_suggests_is_enough(lost, total) -> None:
    with pytest.raises(InputError) as error:
        Budget.parse("0").spend(LOST[:lost], total)
    suggested = str(error.value).rpartition("`skip_broken` to ")[2].rstrip(".")
    Budget.parse(suggested).spend(LOST[:lost], total)


def test_what_opening_the_data_has_skipped_is_no_longer_left() -> None:
    assert Budget.parse("20").left(1000, LOST) == Budget(count=8)
    assert Budget.parse("2%").left(1000, LOST) == Budget(count=8)
    assert Budget.parse("12").left(1000, LOST) is None
