"""Bodies of requests, taken apart."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from vitrail.serving.bodies import Budget, Receive, read_body, uploads_of
from vitrail.serving.refusals import GoneError, Refusal


@pytest.mark.parametrize("boundary", ["x" * 300, "", '"', "\xff", "a b"])
def test_a_boundary_that_cannot_be_is_refused(boundary: str) -> None:
    with pytest.raises(Refusal) as refused:
        uploads_of(f"multipart/form-data; boundary={boundary}", b"--x\r\n\r\nhello\r\n--x--\r\n", 16)
    assert (refused.value.status, refused.value.code) == (422, "broken_body")


def _receiving(*chunks: bytes, then: str = "more") -> Receive:
    """Return a body in chunks; then nothing comes, or the client goes."""
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]

    async def receive() -> MutableMapping[str, Any]:
        if waiting:
            return waiting.pop(0)
        if then == "gone":
            return {"type": "http.disconnect"}
        await asyncio.sleep(60.0)
        raise AssertionError

    return receive


def _read(receive: Receive, budget: Budget, *, most: int = 100, seconds: float = 5.0) -> bytes:
    return asyncio.run(read_body(receive, None, most=most, seconds=seconds, budget=budget))


def test_a_body_that_does_not_come_is_not_waited_for_and_its_bytes_are_given_back() -> None:
    budget = Budget(1000)
    with pytest.raises(Refusal, match=r"did not arrive within 0\.05 seconds") as refused:
        _read(_receiving(b"half"), budget, seconds=0.05)
    assert (refused.value.status, budget.used) == (408, 0)


def test_bytes_of_a_client_that_has_gone_or_sends_too_many_are_given_back() -> None:
    budget = Budget(1000)
    with pytest.raises(GoneError):
        _read(_receiving(b"half", then="gone"), budget)
    assert budget.used == 0
    with pytest.raises(Refusal, match="larger than what is taken"):
        _read(_receiving(b"x" * 60, b"x" * 60), budget)
    assert budget.used == 0
