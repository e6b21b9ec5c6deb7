"""OTLP over HTTP with protobuf bodies (OpenTelemetry Protocol specification 1.x, "OTLP/HTTP")."""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping

import zstandard

from odradek.endpoints import Misdirected, Unauthorized, titled
from odradek.endpoints.http_answer import WEB_PAGE, HttpAnswer, retry_after_s
from odradek.endpoints.http_client import HttpClient, HttpTarget
from odradek_otlp.otlp_settings import Compression, OtlpSettings
from odradek_otlp.rpc_status import read_status
from odradek_otlp.transport import refusal

PROTOBUF = "application/x-protobuf"
UNAUTHORIZED = frozenset({401, 403})
MISDIRECTED = frozenset({404, 405, 415})
"""No content of a push causes these: the path, or the compression, is not one that the server knows."""
RETRYABLE = frozenset({429, 502, 503, 504})


class HttpTransport:
    """One POST per request, over connections that stay open."""

    def __init__(self, settings: OtlpSettings, user_agent: str) -> None:
        self.settings = settings
        headers = {"user-agent": user_agent, "content-type": PROTOBUF}
        if settings.compression is not Compression.NONE:
            headers["content-encoding"] = settings.compression.value
        target = HttpTarget(
            url=settings.target,
            secure=settings.secure,
            tls=settings.tls,
            timeout_ms=settings.timeout_ms,
            connect_timeout_ms=settings.connect_timeout_ms,
            connections=settings.requests_in_flight,
        )
        self.client = HttpClient(target, headers)

    async def open(self) -> None:
        await self.client.open()

    async def refresh(self) -> None:
        await self.client.refresh()

    async def send(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        return judged(await self.client.post(compressed(body, self.settings.compression), headers))

    async def close(self) -> None:
        await self.client.close()


def compressed(body: bytes, compression: Compression) -> bytes:
    """Compress a body at a fast level: bodies are repetitive, and compression delays the forwarder."""
    match compression:
        case Compression.GZIP:
            return gzip.compress(body, compresslevel=1, mtime=0)
        case Compression.ZSTD:
            return zstandard.ZstdCompressor(level=1).compress(body)
        case _:
            return body


def judged(answer: HttpAnswer) -> bytes:
    """The response to a request that was accepted.

    Raises:
        Retry: The specification calls the status retryable.
        Unauthorized: The status is 401 or 403.
        Misdirected: A redirect, 404, 405 or 415, or a web page.
        Reject: The status is any other but success.
    """
    status, headers, content_type, body = answer
    if answer.is_success:
        if body and content_type == WEB_PAGE:
            raise Misdirected(f"HTTP {status}: the answer is {WEB_PAGE}")
        return body if content_type == PROTOBUF else b""
    if answer.is_redirect:
        raise Misdirected(titled(f"HTTP {status}", answer.new_place))
    said = read_status(body) if content_type == PROTOBUF else None
    message = said.message if said else body[:1000].decode(errors="replace")
    after_s = retry_after_s(headers.get("Retry-After"), time.time())
    if status in UNAUTHORIZED:
        raise Unauthorized(titled(f"HTTP {status}", message), after_s)
    if status in MISDIRECTED:
        raise Misdirected(titled(f"HTTP {status}", message))
    raise refusal(f"HTTP {status}", message, status in RETRYABLE, after_s)
