"""Bodies of requests, taken apart."""

import pytest

from vitrail.serving.bodies import uploads_of
from vitrail.serving.refusals import Refusal


@pytest.mark.parametrize("boundary", ["x" * 300, "", '"', "\xff", "a b"])
def test_a_boundary_that_cannot_be_is_refused(boundary: str) -> None:
    with pytest.raises(Refusal) as refused:
        uploads_of(f"multipart/form-data; boundary={boundary}", b"--x\r\n\r\nhello\r\n--x--\r\n", 16)
    assert (refused.value.status, refused.value.code) == (422, "broken_body")
