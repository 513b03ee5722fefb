"""The routes: what each path answers, and its description for OpenAPI."""

import asyncio
import json
import math
import time
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response

from vitrail import __version__
from vitrail.serving.answers import Answer, Failure, Labels, ModelFacts, ModelNames
from vitrail.serving.bodies import Receive, read_body, read_uploads
from vitrail.serving.examples import DESCRIPTION, PREDICT_BODY
from vitrail.serving.gate import FAULT, App, Gate, Scope, Send
from vitrail.serving.jobs import Options
from vitrail.serving.refusals import CODES, GoneError, Refusal, error_content
from vitrail.serving.service import Service, class_number

PAGE = files("vitrail.serving") / "page"
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
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


def make_app(service: Service, keys: tuple[bytes, ...]) -> App:
    """Return the whole application, the door included."""
    app = FastAPI(
        title="Vitrail", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None, openapi_url=None
    )
    _add_predict(app, service)
    _add_facts(app, service)
    _add_operations(app, service)
    _add_page(app)
    _add_errors(app)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.cors,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key", "x-model", "x-request-timeout"],
            expose_headers=["retry-after", "x-request-id"],
        )
    return Gate(app, service, keys)


def _add_predict(app: FastAPI, service: Service) -> None:
    @app.post("/v1/predict", responses={200: {"model": Answer}, **REFUSED}, openapi_extra=PREDICT_BODY, tags=["models"])
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
        responses={200: {"model": Answer}, **REFUSED},
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
    return _json(content, status)


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


def _add_facts(app: FastAPI, service: Service) -> None:
    facts: dict[int | str, dict[str, Any]] = {status: REFUSED[status] for status in (401, 404)}

    @app.get("/v1/models", responses={200: {"model": ModelNames}, 401: REFUSED[401]}, tags=["models"])
    async def models() -> Response:
        """List the models."""
        return _json({"models": list(service.models)})

    @app.get("/v1/model", responses={200: {"model": ModelFacts}, **facts}, tags=["models"])
    async def model(x_model: Annotated[str | None, Header(max_length=200)] = None) -> Response:
        """Describe a model: labels, preprocessing, provenance, digest."""
        return _json(service.model(x_model))

    @app.get("/v1/models/{name}", responses={200: {"model": ModelFacts}, **facts}, tags=["models"])
    async def named_model(name: Annotated[str, Path(max_length=200)]) -> Response:
        """Describe the model of this name."""
        return _json(service.model(name))

    @app.get("/v1/labels", responses={200: {"model": Labels}, **facts}, tags=["models"])
    async def labels(x_model: Annotated[str | None, Header(max_length=200)] = None) -> Response:
        """List the names of the classes."""
        return _json({"labels": service.model(x_model)["labels"]})


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["operations"])
    async def alive() -> Response:
        """Say that the server is alive."""
        return _json({"status": "alive"})

    @app.get("/readyz", responses={503: {"description": "No worker can compute."}}, tags=["operations"])
    async def ready() -> Response:
        """Say whether models can compute: each worker has put an image through each."""
        workers = await service.ready()
        good = any(worker["ready"] for worker in workers) and not service.draining
        return _json({"status": "ready" if good else "not ready", "workers": workers}, 200 if good else 503)

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses={200: {"description": "Figures, in the text format of Prometheus."}, 401: REFUSED[401]},
        tags=["operations"],
    )
    async def metrics() -> Response:
        """Return the figures of the server for Prometheus."""
        return Response(service.watch.exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.post(
        "/v1/reload",
        responses={
            401: REFUSED[401],
            403: {"model": Failure, "description": "The server has no keys."},
            409: {"model": Failure, "description": "The models are being read already."},
            422: {"model": Failure, "description": "A model could not be read; the old ones stay."},
        },
        tags=["operations"],
    )
    async def reload() -> Response:
        """Read the models again, without dropping a request."""
        await service.reload()
        return _json({"models": {name: model["digest"] for name, model in service.models.items()}})


def _add_page(app: FastAPI) -> None:
    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return _json(app.openapi())

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file("index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return _file("docs.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        return _file(name)

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return _file("icon.svg")


def _file(name: str) -> Response:
    """Return one of the page's own files; only names that are there, so that no path leads elsewhere."""
    names = {entry.name for entry in PAGE.iterdir() if entry.is_file()}
    kind = KINDS.get(name.rpartition(".")[2])
    if name not in names or kind is None:
        raise Refusal(404, "not_found", "there is nothing at this path.")
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
    return Response((PAGE / name).read_bytes(), media_type=kind, headers=headers)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        sentence = {404: "there is nothing at this path.", 405: "this path does not take this method."}
        text = sentence.get(error.status_code, "the request cannot be answered.")
        code = CODES.get(error.status_code, "bad_request")
        return _json(error_content(code, text), error.status_code, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def wrong_setting(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = " ".join(map(str, first["loc"]))
        return _json(error_content("wrong_setting", f"{place}: {first['msg'].lower()}."), 422)

    @app.exception_handler(GoneError)
    async def gone(_: Request, __: GoneError) -> Response:
        return _NoAnswer()

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return _json(FAULT, 500)

    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return _json(refusal.content, refusal.status, refusal.headers)


class _NoAnswer(Response):
    """What a client gets that has gone: nothing."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send nothing."""


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(body, status, headers=headers, media_type="application/json")
