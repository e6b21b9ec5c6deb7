"""OTLP over HTTP with protobuf bodies (OpenTelemetry Protocol specification 1.x, "OTLP/HTTP")."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from io import BytesIO

import aiohttp
import zstandard

from odradek.endpoints import BadCertificate, WatchedFiles
from odradek.plugin import Retry
from odradek_otlp.otlp_settings import Compression, OtlpSettings
from odradek_otlp.rpc_status import read_status
from odradek_otlp.transport import Misdirected, Unauthorized, refusal, titled

log = logging.getLogger(__name__)

PROTOBUF = "application/x-protobuf"
WEB_PAGE = "text/html"
UNAUTHORIZED = frozenset({401, 403})
MISDIRECTED = frozenset({404, 405, 415})
"""No content of a push causes these: the path, or the compression, is not one that the server knows."""
RETRYABLE = frozenset({429, 502, 503, 504})
MAX_ANSWER_BYTES = 1 << 20
"""Limit of a response's body. Valid responses are small; a longer body is not read."""
LARGE_BODY_BYTES = 1 << 20
"""Limit of a body passed to aiohttp as bytes; it wants a file object for larger ones."""


class HttpTransport:
    """One POST per request, over connections that stay open."""

    def __init__(self, settings: OtlpSettings, user_agent: str) -> None:
        self.settings = settings
        self.headers = {"user-agent": user_agent, "content-type": PROTOBUF}
        if settings.compression is not Compression.NONE:
            self.headers["content-encoding"] = settings.compression.value
        self.certificates = WatchedFiles(settings.tls.paths())
        self.session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self.certificates.changed()
        settings = self.settings
        timeout = aiohttp.ClientTimeout(
            total=settings.timeout_ms / 1000, sock_connect=settings.connect_timeout_ms / 1000
        )
        # Creating a context reads the machine's CAs, which an endpoint without TLS does not need.
        self.session = aiohttp.ClientSession(
            headers=self.headers,
            timeout=timeout,
            connector=aiohttp.TCPConnector(
                ssl=settings.tls.context() if settings.secure else True, limit=settings.requests_in_flight
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def refresh(self) -> None:
        if self.certificates.paths and self.certificates.changed():
            before = self.session
            try:
                await self.open()
            except BadCertificate as error:
                log.warning("certificate not renewed, using the last good one", extra={"problem": str(error)})
            else:
                if before is not None:
                    await before.close()

    async def send(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        assert self.session is not None, "send before open"
        packed = compressed(body, self.settings.compression)
        data = packed if len(packed) <= LARGE_BODY_BYTES else BytesIO(packed)
        try:
            # A redirect would turn the POST into a GET. If the endpoint moved, the table must be changed.
            async with self.session.post(
                self.settings.target, data=data, headers=headers, allow_redirects=False
            ) as response:
                answer = await bounded_body(response)
        except aiohttp.ConnectionTimeoutError as error:
            raise Retry(f"no connection within {self.settings.connect_timeout_ms} ms") from error
        except TimeoutError as error:
            raise Retry(f"no answer within {self.settings.timeout_ms} ms") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Retry(f"{type(error).__name__}: {error}") from error
        return judged(response.status, response.headers, response.content_type, answer)

    async def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close()


def compressed(body: bytes, compression: Compression) -> bytes:
    """Compress a body at a fast level: bodies are repetitive, and compression delays the forwarder."""
    match compression:
        case Compression.GZIP:
            return gzip.compress(body, compresslevel=1, mtime=0)
        case Compression.ZSTD:
            return zstandard.ZstdCompressor(level=1).compress(body)
        case _:
            return body


async def bounded_body(response: aiohttp.ClientResponse) -> bytes:
    """The body; empty if it is longer than `MAX_ANSWER_BYTES`."""
    pieces: list[bytes] = []
    room_bytes = MAX_ANSWER_BYTES
    async for piece in response.content.iter_chunked(1 << 16):
        room_bytes -= len(piece)
        if room_bytes < 0:
            response.close()
            return b""
        pieces.append(piece)
    return b"".join(pieces)


def judged(status: int, headers: Mapping[str, str], content_type: str, answer: bytes) -> bytes:
    """The response to a request that was accepted.

    Raises:
        Retry: The specification calls the status retryable.
        Unauthorized: The status is 401 or 403.
        Misdirected: A redirect, 404, 405 or 415, or a web page.
        Reject: The status is any other but success.
    """
    if 200 <= status < 300:
        if answer and content_type == WEB_PAGE:
            raise Misdirected(f"HTTP {status}: the answer is {WEB_PAGE}")
        return answer if content_type == PROTOBUF else b""
    if 300 <= status < 400:
        raise Misdirected(titled(f"HTTP {status}", f"redirect to {headers.get('Location', 'nowhere')}"))
    said = read_status(answer) if content_type == PROTOBUF else None
    message = said.message if said else answer[:1000].decode(errors="replace")
    after_s = retry_after_s(headers.get("Retry-After"), time.time())
    if status in UNAUTHORIZED:
        raise Unauthorized(titled(f"HTTP {status}", message), after_s)
    if status in MISDIRECTED:
        raise Misdirected(titled(f"HTTP {status}", message))
    raise refusal(f"HTTP {status}", message, status in RETRYABLE, after_s)


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """The wait in a Retry-After header, seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now_s)
