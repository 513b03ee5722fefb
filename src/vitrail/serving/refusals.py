"""What the server refuses: a status, a word for programs, a sentence for people."""

import math
from typing import Any


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is answered with an error."""

    def __init__(self, status: int, code: str, sentence: str, *, retry: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence
        self.retry = None if retry is None else max(math.ceil(retry), 1)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        headers = {} if self.retry is None else {"retry-after": str(self.retry)}
        return headers | ({"www-authenticate": "Bearer"} if self.status == 401 else {})

    @property
    def content(self) -> dict[str, Any]:
        """The body of the answer."""
        return error_content(self.code, self.sentence)


class GoneError(Exception):
    """The client has closed the connection: there is nobody to answer."""


def error_content(code: str, sentence: str) -> dict[str, Any]:
    """Return the body of every answer that is an error."""
    return {"error": {"code": code, "message": sentence}}


CODES = {
    400: "bad_request",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "not_an_image",
    422: "broken_image",
    503: "not_answered",
}
"""The word for a status where there is no better one."""
