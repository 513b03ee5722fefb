"""A stand-in for Hugging Face on 127.0.0.1: one repository, whose facts a test may falsify."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.published.server import Standin, serving, status

COMMIT = "c0ffee" * 6 + "beef"


@dataclass
class Repository:
    """What is published."""

    name: str
    files: dict[str, bytes]
    listed: dict[str, str] = field(default_factory=dict)
    """SHA-256 that the repository lists, where it is not the file's own."""
    refused: tuple[int, str] | None = None
    """A status and the error code that goes with it."""


def facts(repository: Repository) -> dict:
    siblings = []
    for name, body in repository.files.items():
        sha256 = repository.listed.get(name, hashlib.sha256(body).hexdigest())
        lfs = {"sha256": sha256, "size": len(body), "pointerSize": 134}
        siblings.append({"rfilename": name, "size": len(body), "blobId": sha256[:40], "lfs": lfs})
    return {"id": repository.name, "modelId": repository.name, "sha": COMMIT, "siblings": siblings, "tags": []}


@contextmanager
def publishing(repository: Repository) -> Iterator[Standin]:
    def answer(request: BaseHTTPRequestHandler, _: int) -> None:
        path = request.path.partition("?")[0]
        if repository.refused is not None:
            code, reason = repository.refused
            status(request, code, X_Error_Code=reason, X_Error_Message=reason)
            return
        if re.fullmatch(rf"/api/models/{repository.name}(/revision/.+)?", path):
            _body(request, json.dumps(facts(repository)).encode(), "application/json")
            return
        match = re.fullmatch(rf"/{repository.name}/resolve/([^/]+)/(.+)", path)
        if match is None or match[2] not in repository.files:
            status(request, 404, X_Error_Code="RepoNotFound" if match is None else "EntryNotFound")
            return
        body = repository.files[match[2]]
        _body(
            request,
            body,
            "application/octet-stream",
            ETag=f'"{hashlib.sha256(body).hexdigest()}"',
            X_Repo_Commit=COMMIT,
        )

    with serving(answer) as server:
        yield server


def _body(request: BaseHTTPRequestHandler, body: bytes, kind: str, **headers: str) -> None:
    request.send_response(200)
    for name, value in {"Content_Type": kind, "Content_Length": str(len(body)), **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(body)
