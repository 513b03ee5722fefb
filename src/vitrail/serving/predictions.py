"""The route that classifies images: its settings, its deadline, and what the model must have for them."""

import asyncio
import math
import time
from typing import Annotated, Any

from fastapi import FastAPI, Header, Query, Request
from starlette.responses import Response

from vitrail.serving.answers import Answer
from vitrail.serving.bodies import Receive, read_body, read_uploads
from vitrail.serving.examples import PREDICT_BODY
from vitrail.serving.jobs import Options
from vitrail.serving.refusals import Refusal
from vitrail.serving.replies import REFUSED, json_reply
from vitrail.serving.service import Service, class_number

ANSWERED: dict[str, Any] = {"model": Answer, "description": "What became of each image, in their order."}


def add_predictions(app: FastAPI, service: Service) -> None:
    """Add the route, under its own path and under the path of each model."""

    @app.post("/v1/predict", responses={200: ANSWERED, **REFUSED}, openapi_extra=PREDICT_BODY, tags=["models"])
    async def predict(
        request: Request,
        top: Annotated[int, Query(ge=1, le=1000, description="How many classes for each image.")] = 5,
        features: Annotated[bool, Query(description="Whether to add the features.")] = False,
        explain: Annotated[
            str | None, Query(max_length=40, description="A method of the model, or auto: adds a map to each image.")
        ] = None,
        label: Annotated[
            str | None, Query(alias="class", max_length=500, description="The class to explain: its name or number.")
        ] = None,
        layer: Annotated[int, Query(ge=-1000, le=1000, description="With explain=attention: the block.")] = -1,
        head: Annotated[int | None, Query(ge=0, le=1000, description="With explain=attention: the head.")] = None,
        patch: Annotated[
            int | None, Query(ge=0, le=2**20, description="With explain=attention: the patch that attends.")
        ] = None,
        x_model: Annotated[str | None, Header(max_length=200, description="The model, by name.")] = None,
        x_request_timeout: Annotated[
            float | None, Header(gt=0, description="Seconds until the answer is of no use.")
        ] = None,
    ) -> Response:
        """Classify the images of a request."""
        name = request.path_params.get("name", x_model)
        began = request.scope["vitrail"]["began"]
        seconds = service.settings.timeout
        if x_request_timeout is not None and not math.isnan(x_request_timeout):
            seconds = min(seconds, x_request_timeout)
        model = service.model(name)
        options = Options(
            top=top,
            features=features,
            explain=explain,
            label=class_number(label, model["labels"]),
            layer=layer,
            head=head,
            patch=patch,
        )
        check_options(options, model)
        return await _answered(request, service, name, options, began + seconds)

    app.add_api_route(
        "/v1/models/{name}/predict",
        predict,
        methods=["POST"],
        responses={200: ANSWERED, **REFUSED},
        openapi_extra=PREDICT_BODY
        | {"parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]},
        tags=["models"],
    )


async def _answered(
    request: Request, service: Service, name: str | None, options: Options, deadline: float
) -> Response:
    settings, headers = service.settings, request.headers
    body = await read_body(
        request.receive,
        headers.get("content-length"),
        most=settings.body_bytes,
        seconds=max(deadline - time.monotonic(), 0.001),
        budget=service.budget,
    )
    gone = asyncio.ensure_future(_gone(request.receive))
    size = len(body)
    try:
        uploads = await read_uploads(headers.get("content-type"), body, most=settings.max_images)
        del body
        request.scope["vitrail"]["images"] = len(uploads)
        status, content = await service.predict(name, options, uploads, deadline, gone)
    finally:
        service.budget.give_back(size)
        gone.cancel()
    return json_reply(content, status)


async def _gone(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def check_options(options: Options, model: dict[str, Any]) -> None:
    """Refuse a method, a block, a head or a patch that the model does not have."""
    if options.explain is None:
        for name in ("label", "head", "patch"):
            if getattr(options, name) is not None:
                word = "class" if name == "label" else name
                raise Refusal(422, "wrong_setting", f"{word} has no use without explain.")
        return
    methods = (*model["methods"], "auto")
    if options.explain not in methods:
        raise Refusal(422, "no_such_method", f"explain must be one of {', '.join(methods)}.")
    if options.explain != "attention":
        if options.patch is not None or options.head is not None:
            raise Refusal(422, "wrong_setting", "patch and head have a use with explain=attention only.")
        return
    rows, columns = model["grid"]
    if not -model["blocks"] <= options.layer < model["blocks"]:
        raise Refusal(422, "wrong_setting", f"layer must be from 0 to {model['blocks'] - 1}.")
    if options.head is not None and options.head >= model["heads"]:
        raise Refusal(422, "wrong_setting", f"head must be from 0 to {model['heads'] - 1}.")
    if options.patch is not None and options.patch >= rows * columns:
        raise Refusal(422, "wrong_setting", f"patch must be from 0 to {rows * columns - 1}.")
