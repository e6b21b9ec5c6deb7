"""Fetching a JWKS over the network or from a file. Blocks, so it runs on a thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from odradek.bounds.small_file import read_small_file
from odradek.endpoints.tls_context import default_context

MAX_BYTES: Final = 1_048_576
TIMEOUT_S: Final = 5.0
"""Of the whole fetch: a stop of the host waits for one that is under way."""
MAX_REQUESTS: Final = 6
"""The first, and one for each redirect that is followed."""
ACCEPT: Final = {"Accept": "application/json"}
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
        if "#" in url or "?" in url:  # they would end the path
            raise BadJwksUrl(f"expected # as %23 and ? as %3F in a file: address, found {url!r}")
        return partial(read_small_file, Path(unquote(parts.path)), MAX_BYTES)
    if parts.hostname and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ON_THIS_MACHINE)
    ):
        return partial(fetch_over_http, url, ca_file)
    raise BadJwksUrl(f"expected https://HOST/PATH, file:///PATH, or http:// on this machine, found {url!r}")


def fetch_over_http(url: str, ca_file: str | None) -> bytes:
    """Return the document at an address. Redirects are followed on the same host only."""
    from odradek.endpoints.http_exchange import exchange

    place = url
    deadline_s = time.monotonic() + TIMEOUT_S
    tls = default_context(cafile=ca_file) if urlsplit(url).scheme == "https" else None
    for _ in range(MAX_REQUESTS):
        left_s = max(0.0, deadline_s - time.monotonic())
        answer = exchange(place, timeout_s=left_s, max_bytes=MAX_BYTES, headers=ACCEPT, tls=tls)
        if answer.is_success:
            check_size(answer.body)
            return answer.body
        target = answer.headers.get("Location")
        if not answer.is_redirect or target is None:
            break
        place = urljoin(place, target)
        if urlsplit(place)[:2] != urlsplit(url)[:2]:
            raise OSError(f"a redirect to another host: {urlsplit(place).netloc!r:.200}")
    raise OSError(f"HTTP {answer.status}")


def check_size(document: bytes) -> None:
    """Refuse a document that is too large to be a JWKS."""
    if len(document) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
