"""One request over https: what is followed, what is refused, and what is worth trying again."""

import http.client
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from socket import gaierror
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from vitrail.base.errors import ConfigError, NetworkError
from vitrail.published.source import LOOPBACK, check_address

_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED = {
    401: "asks for a login; get the file by hand, and give its path",
    403: "refuses access; its licence may have to be accepted first on its page",
    404: "has no such file; it may have moved: look for a newer Vitrail, or give another address",
    410: "has removed the file; look for a newer Vitrail, or give another address",
}


class PassingError(Exception):
    """What may go away by itself: a cut connection, a server that is busy."""

    def __init__(self, reason: str, wait: float | None = None, *, reached: bool = True) -> None:
        """Keep why, how many seconds the server asks to wait, and whether there was an answer at all."""
        super().__init__(reason)
        self.wait, self.reached = wait, reached


class RangeError(Exception):
    """The server does not have the requested part of the file."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The beginning of an answer whose body is yet to be read."""

    body: http.client.HTTPResponse
    status: int
    headers: http.client.HTTPMessage

    @property
    def validator(self) -> str | None:
        """What names these bytes to the server: a strong ETag, or the time of the last change."""
        tag = self.headers.get("ETag")
        return tag if tag and not tag.startswith("W/") else self.headers.get("Last-Modified")


class _Redirects(HTTPRedirectHandler):
    """Follows an answer to another address that is as safe as the first."""

    max_redirections = 8

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> Request | None:
        """Refuse to leave https."""
        check_redirect(req.full_url, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_redirect(start: str, end: str) -> None:
    """Refuse to follow an answer that leads from https to anything else, or to what is not an address."""
    host = urlsplit(start).netloc
    try:
        check_address(end)
    except ConfigError as error:
        raise NetworkError(f"{host} leads elsewhere: {error}") from None
    if start.startswith("https:") and not end.startswith("https:"):
        raise NetworkError(f"{host} leads from https to {end}, which is not encrypted, so it is not followed.")


def request(address: str, headers: dict[str, str], *, timeout: float) -> Answer:
    """Ask for an address, and return once the answer begins; `timeout` bounds every silence, in seconds."""
    check_address(address)
    host = urlsplit(address).hostname
    own = [ProxyHandler({})] if host in LOOPBACK else []
    question = Request(address, headers={"Accept-Encoding": "identity", "User-Agent": "vitrail", **headers})  # noqa: S310 - checked above
    try:
        body = build_opener(_Redirects, *own).open(question, timeout=timeout)
    except HTTPError as error:
        with error:
            raise _refusal(error, str(host)) from None
    except URLError as error:
        raise _unreached(error.reason, str(host)) from None
    except (OSError, http.client.HTTPException) as error:
        raise PassingError(f"{host} ended the connection ({error or type(error).__name__})") from None
    return Answer(body=body, status=body.status, headers=body.headers)


def _refusal(error: HTTPError, host: str) -> Exception:
    if error.code == 416:
        return RangeError()
    if 300 <= error.code < 400:
        return NetworkError(f"{host} leads from one address to the next without an end; give another address.")
    if error.code in _LATER:
        busy = "asks to come back later" if error.code == 429 else "is out of order"
        return PassingError(f"{host} {busy} (HTTP {error.code})", _retry_after(error.headers))
    advice = _REFUSED.get(error.code, "refuses; give another address")
    return NetworkError(f"{host} {advice} (HTTP {error.code}).")


def _unreached(reason: object, host: str) -> Exception:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return NetworkError(f"{host} has no valid certificate ({reason.verify_message}), so nothing is taken from it.")
    if isinstance(reason, gaierror):
        return NetworkError(f"{host} cannot be found: there is no network, or no such host.")
    if isinstance(reason, TimeoutError):
        return PassingError(f"{host} does not answer in time")
    return PassingError(f"{host} cannot be reached ({getattr(reason, 'strerror', None) or reason})", reached=False)


def _retry_after(headers: Message) -> float | None:
    """Read how long to wait: seconds, or a time."""
    text = headers.get("Retry-After", "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max((parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None
