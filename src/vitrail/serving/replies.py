"""How answers leave: as JSON, as an error with its status, or not at all; and the errors that OpenAPI describes."""

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from vitrail.serving.answers import Failure
from vitrail.serving.bodies import Receive
from vitrail.serving.gate import FAULT, Scope, Send
from vitrail.serving.refusals import CODES, GoneError, Refusal, error_content

REFUSED: dict[int | str, dict[str, Any]] = {
    401: {"model": Failure, "description": "The key is missing or wrong."},
    404: {"model": Failure, "description": "There is no such model."},
    408: {"model": Failure, "description": "The body did not arrive in time."},
    413: {"model": Failure, "description": "The body, its images or their pixels are more than is taken."},
    415: {"model": Failure, "description": "The body, or every image, has a form that is not read."},
    422: {"model": Failure, "description": "The settings are wrong, or every image is broken."},
    429: {"model": Failure, "description": "The queue is full; the header Retry-After says when to try again."},
    503: {"model": Failure, "description": "The deadline has passed, or the server is stopping."},
}


def json_reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with JSON, in which there is nothing that is not a number."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(body, status, headers=headers, media_type="application/json")


def add_errors(app: FastAPI) -> None:
    """Give every exception its answer."""

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        sentence = {404: "there is nothing at this path.", 405: "this path does not take this method."}
        text = sentence.get(error.status_code, "the request cannot be answered.")
        code = CODES.get(error.status_code, "bad_request")
        return json_reply(error_content(code, text), error.status_code, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def wrong_setting(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = " ".join(map(str, first["loc"]))
        return json_reply(error_content("wrong_setting", f"{place}: {first['msg'].lower()}."), 422)

    @app.exception_handler(GoneError)
    async def gone(_: Request, __: GoneError) -> Response:
        return _NoAnswer()

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return json_reply(FAULT, 500)

    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return json_reply(refusal.content, refusal.status, refusal.headers)


class _NoAnswer(Response):
    """What a client gets that has gone: nothing."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send nothing."""
