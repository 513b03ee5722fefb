"""What torchrun sets: all of it, or none."""

import pytest

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.ranks import Meeting, Ranks, join, read_environment

WHOLE = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node", "MASTER_PORT": "29500"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch):
    for name in WHOLE:
        monkeypatch.delenv(name, raising=False)

    def set_variables(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_variables


def test_without_torchrun_a_process_is_alone(environment) -> None:
    assert read_environment() is None
    environment(MASTER_PORT="29500")  # which some schedulers set for everybody
    assert read_environment() is None


def test_what_torchrun_sets_is_read(environment) -> None:
    environment(**WHOLE)
    assert read_environment() == Meeting(rank=1, world=4, address="node", port=29500)


@pytest.mark.parametrize("missing", sorted(WHOLE))
def test_what_is_set_by_half_is_refused_by_name(missing: str, environment) -> None:
    environment(**{name: value for name, value in WHOLE.items() if name != missing})
    with pytest.raises(ConfigError, match=f"but not {missing}, of which torchrun sets all"), join():
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("RANK", "one"), ("RANK", "-1"), ("RANK", ""), ("WORLD_SIZE", "2.5"), ("MASTER_PORT", "9" * 300), ("RANK", "4")],
)
def test_what_is_no_number_or_too_large_is_refused_by_name(name: str, value: str, environment) -> None:
    environment(**WHOLE | {name: value})
    with pytest.raises(ConfigError, match=name), join():
        pass


def test_a_meeting_place_that_is_not_there_is_one_sentence(environment, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    monkeypatch.setattr("vitrail.base.ranks.PATIENCE", timedelta(seconds=1))
    environment(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    with pytest.raises(InputError, match=r"rank 1 could not meet the others of 2 at 127.0.0.1:1"), join():
        pass


def test_the_first_ranks_number_and_its_refusal_reach_everyone() -> None:
    assert Ranks().follow(lambda: 7) == 7

    def refuse() -> int:
        raise InputError("no")

    with pytest.raises(InputError, match=r"^no$"):
        Ranks().follow(refuse)
