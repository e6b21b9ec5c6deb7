"""Fetching a JWKS over the network or from a file. Blocks, so it runs on a thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from odradek.endpoints.tls_context import default_context
from odradek.small_file import read_small_file

if TYPE_CHECKING:
    from http.client import HTTPResponse

MAX_BYTES: Final = 1_048_576
TIMEOUT_S: Final = 5.0
"""Of the whole fetch: a stop of the host waits for one that is under way."""
PIECE_BYTES: Final = 65_536
ON_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class BadJwksUrl(ValueError):
    """An address that keys are not fetched from."""


def jwks_fetcher(url: str, ca_file: str | None = None) -> Callable[[], bytes]:
    """Return the function that fetches a document. It raises OSError or ValueError if that fails.

    Args:
        url: An ``https://`` or ``file://`` address, or ``http://`` on this machine.
        ca_file: PEM file of certificate authorities; None uses those of the system.

    Raises:
        BadJwksUrl: The address is of another kind.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return partial(read_file, Path(unquote(parts.path)))
    if parts.hostname and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ON_THIS_MACHINE)
    ):
        return partial(fetch_over_http, url, ca_file)
    raise BadJwksUrl(f"expected https://HOST/PATH, file:///PATH, or http:// on this machine, found {url!r}")


def read_file(path: Path) -> bytes:
    """Return the document in a file."""
    return read_small_file(path, MAX_BYTES)


def fetch_over_http(url: str, ca_file: str | None) -> bytes:
    """Return the document at an address. Redirects are followed on the same host only."""
    from urllib import error, request

    class SameHost(request.HTTPRedirectHandler):
        def redirect_request(
            self, req: request.Request, fp: object, code: int, msg: str, headers: object, newurl: str
        ) -> request.Request | None:
            if urlsplit(newurl)[:2] != urlsplit(url)[:2]:
                raise OSError(f"a redirect to another host: {urlsplit(newurl).netloc!r:.200}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]

    deadline_s = time.monotonic() + TIMEOUT_S
    opener = request.build_opener(SameHost, request.HTTPSHandler(context=default_context(cafile=ca_file)))
    asked = request.Request(url, headers={"Accept": "application/json"})  # noqa: S310  the scheme was checked
    response: HTTPResponse
    try:
        response = opener.open(asked, timeout=TIMEOUT_S)
    except error.HTTPError as refused:
        refused.close()  # it holds the connection
        raise
    with response:
        document = bytearray()
        while piece := response.read1(PIECE_BYTES):
            document += piece
            check_size(document)
            if time.monotonic() > deadline_s:
                raise OSError(f"not complete after {TIMEOUT_S:g} s")
    return bytes(document)


def check_size(document: bytes | bytearray) -> None:
    """Refuse a document that is too large to be a JWKS."""
    if len(document) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
