"""The body of a request: read within bounds of size and time, never to a disk, and taken apart into images."""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from vitrail.serving.refusals import GoneError, Refusal

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
LONGEST_NAME = 200
LARGE = 2**20
"""Bytes from which a body is taken apart in a thread, so that others are served meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """One image of a request as it came."""

    name: str
    content: bytes
    wrong: str | None = None
    """Why there are no bytes, where there are none."""


class Budget:
    """How many bytes of bodies may be in memory at once, over all requests."""

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0

    def take(self, count: int) -> None:
        """Count more bytes, or refuse."""
        if self.used + count > self.most:
            raise Refusal(503, "busy", "the server receives too many large requests at the moment.", retry=1.0)
        self.used += count

    def give_back(self, count: int) -> None:
        """Count bytes that are not needed any more."""
        self.used -= count


async def read_body(receive: Receive, length: str | None, *, most: int, seconds: float, budget: Budget) -> bytes:
    """Return the whole body; the caller gives its bytes back to the budget."""
    if length is not None and length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise _too_large(most)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                chunk = _chunk(message, most - size)
                budget.take(len(chunk))
                size += len(chunk)
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        budget.give_back(size)
        raise Refusal(408, "slow_body", f"the body did not arrive within {seconds:g} seconds.") from None
    except BaseException:
        budget.give_back(size)
        raise


def _chunk(message: MutableMapping[str, Any], room: int) -> bytes:
    """Return the bytes of a message, of which there may be as many as there is room for."""
    if message["type"] == "http.disconnect":
        raise GoneError
    chunk: bytes = message.get("body", b"")
    if len(chunk) > room:
        raise Refusal(413, "body_too_large", "the body is larger than what is taken.")
    return chunk


async def read_uploads(content_type: str | None, body: bytes, *, most: int) -> list[Upload]:
    """Return the images of a body, of which there are one to `most`."""
    if len(body) > LARGE:
        return await asyncio.to_thread(uploads_of, content_type, body, most)
    return uploads_of(content_type, body, most)


def uploads_of(content_type: str | None, body: bytes, most: int) -> list[Upload]:
    """Take a body apart: multipart with a file in each part, or JSON with base64."""
    kind, options = parse_options_header(content_type)
    if kind == b"multipart/form-data":
        uploads = _of_multipart(options.get(b"boundary", b""), body, most)
    elif kind == b"application/json":
        uploads = _of_json(body, most)
    else:
        raise Refusal(
            415,
            "unsupported_media_type",
            "the content type must be multipart/form-data with files, or application/json with base64.",
        )
    if not uploads:
        raise Refusal(422, "no_images", "the request has no images; send one or more files.")
    return uploads


def _of_multipart(boundary: bytes, body: bytes, most: int) -> list[Upload]:
    uploads: list[Upload] = []
    header, value = bytearray(), bytearray()
    headers: dict[bytes, bytes] = {}
    content: list[bytes] = []
    ended = False

    def begin() -> None:
        if len(uploads) >= most:
            raise _too_many(most)
        headers.clear()
        content.clear()

    def end_header() -> None:
        headers[bytes(header).lower()] = bytes(value)
        header.clear()
        value.clear()

    def end() -> None:
        nonlocal ended
        ended = True

    def end_part() -> None:
        _, options = parse_options_header(headers.get(b"content-disposition"))
        name = options.get(b"filename", options.get(b"name", b"")).decode("utf-8", "replace")
        uploads.append(Upload(name=name[:LONGEST_NAME] or f"image {len(uploads)}", content=b"".join(content)))

    calls: dict[str, Any] = {
        "on_part_begin": begin,
        "on_part_data": lambda data, start, stop: content.append(data[start:stop]),
        "on_part_end": end_part,
        "on_header_field": lambda data, start, stop: header.extend(data[start:stop]),
        "on_header_value": lambda data, start, stop: value.extend(data[start:stop]),
        "on_header_end": end_header,
        "on_end": end,
    }
    try:
        parser = MultipartParser(boundary, calls)  # type: ignore[arg-type]
        parser.write(body)
        parser.finalize()
    except FormParserError:  # also of a boundary that is too long
        ended = False
    if not ended:
        raise Refusal(422, "broken_body", "the body is not multipart/form-data, or a part of it is missing.")
    return uploads


def _of_json(body: bytes, most: int) -> list[Upload]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(422, "broken_body", "the body is not JSON.") from None
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list) or set(content) != {"images"}:
        raise Refusal(422, "broken_body", 'the body must be {"images": [...]}, and nothing else.')
    if len(images) > most:
        raise _too_many(most)
    return [_of_base64(image, place) for place, image in enumerate(images)]


def _of_base64(image: Any, place: int) -> Upload:
    """Read base64, or an object of `data` and perhaps a `name`."""
    name, text = f"image {place}", image
    if isinstance(image, dict):
        name, text = image.get("name", name), image.get("data")
        if not isinstance(name, str) or not set(image) <= {"name", "data"}:
            text = None
            name = f"image {place}"
    name = name.encode("utf-8", "replace").decode()[:LONGEST_NAME]
    if not isinstance(text, str):
        wrong = 'it must be base64, or an object such as {"name": "cat.jpg", "data": "base64"}.'
        return Upload(name=name, content=b"", wrong=wrong)
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return Upload(name=name, content=base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return Upload(name=name, content=b"", wrong="it is not base64.")


def _too_large(most: int) -> Refusal:
    return Refusal(413, "body_too_large", f"the body is larger than the {most / 2**20:g} MiB that are taken.")


def _too_many(most: int) -> Refusal:
    return Refusal(413, "too_many_images", f"the request has more than the {most} images that are taken at once.")
