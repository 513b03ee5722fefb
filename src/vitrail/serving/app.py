"""The application: its routes about models and operations, and everything else put together."""

from typing import Annotated, Any

from fastapi import FastAPI, Header, Path
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response

from vitrail import __version__
from vitrail.serving.answers import Failure, Labels, ModelFacts, ModelNames
from vitrail.serving.examples import DESCRIPTION
from vitrail.serving.gate import App, Gate
from vitrail.serving.predictions import add_predictions
from vitrail.serving.replies import REFUSED, add_errors, json_reply
from vitrail.serving.service import Service
from vitrail.serving.site import add_site


def make_app(service: Service, keys: tuple[bytes, ...]) -> App:
    """Return the whole application, the door included."""
    app = FastAPI(
        title="Vitrail", version=__version__, description=DESCRIPTION, docs_url=None, redoc_url=None, openapi_url=None
    )
    add_predictions(app, service)
    _add_facts(app, service)
    _add_operations(app, service)
    add_site(app)
    add_errors(app)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.cors,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key", "x-model", "x-request-timeout"],
            expose_headers=["retry-after", "x-request-id"],
        )
    return Gate(app, service, keys)


def _add_facts(app: FastAPI, service: Service) -> None:
    facts: dict[int | str, dict[str, Any]] = {status: REFUSED[status] for status in (401, 404)}
    described = {"model": ModelFacts, "description": "Everything that is known about the model."}

    @app.get(
        "/v1/models",
        responses={
            200: {"model": ModelNames, "description": "The names; the first one is the default."},
            401: REFUSED[401],
        },
        tags=["models"],
    )
    async def models() -> Response:
        """List the models."""
        return json_reply({"models": list(service.models)})

    @app.get("/v1/model", responses={200: described, **facts}, tags=["models"])
    async def model(x_model: Annotated[str | None, Header(max_length=200)] = None) -> Response:
        """Describe a model: labels, preprocessing, provenance, digest."""
        return json_reply(service.model(x_model))

    @app.get("/v1/models/{name}", responses={200: described, **facts}, tags=["models"])
    async def named_model(name: Annotated[str, Path(max_length=200)]) -> Response:
        """Describe the model of this name."""
        return json_reply(service.model(name))

    @app.get(
        "/v1/labels",
        responses={200: {"model": Labels, "description": "In the order of the outputs."}, **facts},
        tags=["models"],
    )
    async def labels(x_model: Annotated[str | None, Header(max_length=200)] = None) -> Response:
        """List the names of the classes."""
        return json_reply({"labels": service.model(x_model)["labels"]})


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", responses={200: {"description": "It is."}}, tags=["operations"])
    async def alive() -> Response:
        """Say that the server is alive."""
        return json_reply({"status": "alive"})

    @app.get(
        "/readyz",
        responses={200: {"description": "One can, at least."}, 503: {"description": "No worker can compute."}},
        tags=["operations"],
    )
    async def ready() -> Response:
        """Say whether models can compute: each worker has put an image through each."""
        workers = await service.ready()
        good = any(worker["ready"] for worker in workers) and not service.draining
        return json_reply({"status": "ready" if good else "not ready", "workers": workers}, 200 if good else 503)

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
            200: {"description": "The digests of the models that answer from now on."},
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
        return json_reply({"models": {name: model["digest"] for name, model in service.models.items()}})
