"""OTLP over HTTP with protobuf bodies (OpenTelemetry Protocol specification 1.x, "OTLP/HTTP")."""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from io import BytesIO

import aiohttp
import zstandard

from odradek.plugin import Retry
from odradek_otlp.otlp_settings import Compression, OtlpSettings
from odradek_otlp.rpc_status import read_status
from odradek_otlp.transport import refusal

PROTOBUF = "application/x-protobuf"
RETRYABLE = frozenset({429, 502, 503, 504})
MAX_ANSWER_BYTES = 1 << 20
"""The answer to a push is small; what is longer is not read."""
LARGE_BODY_BYTES = 1 << 20
"""Above this aiohttp wants a file to write piece by piece."""


class HttpTransport:
    """One POST per batch, connections kept."""

    def __init__(self, settings: OtlpSettings, user_agent: str) -> None:
        self.settings = settings
        self.headers = {"user-agent": user_agent} | dict(settings.headers) | {"content-type": PROTOBUF}
        if settings.compression is not Compression.NONE:
            self.headers["content-encoding"] = settings.compression.value
        self.session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        timeout = aiohttp.ClientTimeout(total=self.settings.timeout_ms / 1000)
        self.session = aiohttp.ClientSession(headers=self.headers, timeout=timeout)

    async def send(self, body: bytes) -> bytes:
        assert self.session is not None, "send before open"
        packed = compressed(body, self.settings.compression)
        data = packed if len(packed) <= LARGE_BODY_BYTES else BytesIO(packed)
        try:
            # A redirect would turn the POST into a GET: whoever moved the endpoint says so in the table.
            async with self.session.post(self.settings.target, data=data, allow_redirects=False) as response:
                answer = await bounded_body(response)
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
    """Fast levels: bodies repeat themselves, and the time is the forwarder's."""
    match compression:
        case Compression.GZIP:
            return gzip.compress(body, compresslevel=1, mtime=0)
        case Compression.ZSTD:
            return zstandard.ZstdCompressor(level=1).compress(body)
        case _:
            return body


async def bounded_body(response: aiohttp.ClientResponse) -> bytes:
    """The body; nothing when it is longer than anything we would read."""
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
    """The answer to a request that was taken.

    Raises:
        Retry: The status is one of those that the specification calls retryable.
        Reject: It is any other.
    """
    if 200 <= status < 300:
        return answer if content_type == PROTOBUF else b""
    said = read_status(answer) if content_type == PROTOBUF else None
    message = said.message if said else answer[:1000].decode(errors="replace")
    after_s = retry_after_s(headers.get("Retry-After"), time.time())
    raise refusal(f"HTTP {status}", message, status in RETRYABLE, after_s)


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """Seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now_s)
