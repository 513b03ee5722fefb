"""The files for browsers: the page, the description of the API, and what they load; all from this server."""

from importlib.resources import files

from fastapi import FastAPI
from starlette.responses import Response

from vitrail.serving.refusals import Refusal
from vitrail.serving.replies import json_reply

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


def add_site(app: FastAPI) -> None:
    """Add the routes of the files."""

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return json_reply(app.openapi())

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
