"""A client for HTTP endpoints that take POST requests. A plugin that imports this depends on aiohttp.

It runs on the loop of its caller, and has neither a thread nor a clock of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final
from weakref import WeakSet

import aiohttp

from odradek.endpoints.http_answer import MAX_HEADER_BYTES, HttpAnswer
from odradek.endpoints.tls_files import BadCertificate, TlsFiles
from odradek.endpoints.watched_files import WatchedFiles
from odradek.plugin.plugin_stats import described
from odradek.plugin.protocols import Retry

log = logging.getLogger(__name__)

MAX_ANSWER_BYTES: Final = 1 << 20
"""Limit of a response's body. Valid responses are small; a longer body is not read."""
LARGE_BODY_BYTES: Final = 1 << 20
"""Limit of a body passed to aiohttp as bytes; it wants a file object for larger ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """An address, and how to connect to it."""

    url: str
    secure: bool
    """TLS."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    timeout_ms: int = 10_000
    """Time limit of one request, including the connection."""
    connect_timeout_ms: int = 5_000
    connections: int = 4


class EndingConnector(aiohttp.TCPConnector):
    """Ends connections that aiohttp has only begun to close.

    A closed transport keeps its socket and its bytes until the endpoint has read them all. An endpoint that
    hangs never does, so each request that times out would leave a connection.
    """

    def __init__(self, **options: Any) -> None:
        """Prepare.

        Args:
            options: As `aiohttp.TCPConnector`.
        """
        super().__init__(**options)
        self.transports: WeakSet[Any] = WeakSet()

    async def connect(self, *request: Any, **options: Any) -> Any:
        """A connection for a request, as in `aiohttp.TCPConnector`."""
        connection = await super().connect(*request, **options)
        if connection.transport is not None:
            self.transports.add(connection.transport)
        return connection

    async def close(self, **options: Any) -> None:
        """End all connections, also those of requests in flight: aiohttp would wait until these are sent."""
        for transport in list(self.transports):
            transport.abort()
        await super().close(**options)

    def end_closing(self) -> None:
        """End all connections that are being closed, without their unsent bytes."""
        for transport in list(self.transports):
            if transport.is_closing():
                self.transports.discard(transport)
                transport.abort()


class HttpClient:
    """One POST per request, over connections that stay open.

    `open` succeeds while the endpoint is down; `close` may come without `open`, and twice.
    """

    def __init__(self, target: HttpTarget, headers: Mapping[str, str]) -> None:
        """Prepare.

        Args:
            target: The address.
            headers: Headers of all requests.
        """
        self.target = target
        self.headers = headers
        self.certificates = WatchedFiles(target.tls.paths())
        self.session: aiohttp.ClientSession | None = None
        self.connector: EndingConnector

    async def open(self) -> None:
        """Create the session, without connecting.

        Raises:
            BadCertificate: A file of TLS is unusable.
        """
        self.certificates.changed()
        target = self.target
        timeout = aiohttp.ClientTimeout(
            total=target.timeout_ms / 1000, sock_connect=target.connect_timeout_ms / 1000
        )
        # Creating a context reads the machine's CAs, which an endpoint without TLS does not need.
        tls = target.tls.context() if target.secure else True
        self.connector = EndingConnector(ssl=tls, limit=target.connections)
        self.session = aiohttp.ClientSession(
            headers=self.headers,
            timeout=timeout,
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_field_size=MAX_HEADER_BYTES,
        )

    async def refresh(self) -> None:
        """Switch to renewed certificates. Call while no request is in flight."""
        if self.certificates.paths and self.certificates.changed():
            before = self.session
            try:
                await self.open()
            except BadCertificate as error:
                log.warning("certificate not renewed, using the last good one", extra={"problem": str(error)})
            else:
                if before is not None:
                    await before.close()

    async def post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """Send a body.

        Raises:
            Retry: The endpoint is unreachable or too slow.
        """
        assert self.session is not None, "post before open"
        data = body if len(body) <= LARGE_BODY_BYTES else BytesIO(body)
        target = self.target
        try:
            # A redirect would turn the POST into a GET. If the endpoint moved, the table must be changed.
            async with self.session.post(
                target.url, data=data, headers=headers, allow_redirects=False
            ) as response:
                answer = await bounded_body(response)
        except aiohttp.ConnectionTimeoutError as error:
            raise Retry(f"no connection within {target.connect_timeout_ms} ms") from error
        except TimeoutError as error:
            raise Retry(f"no answer within {target.timeout_ms} ms") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Retry(described(error)) from error
        finally:
            self.connector.end_closing()
        return HttpAnswer(response.status, response.headers, response.content_type, answer)

    async def close(self) -> None:
        """Close all connections."""
        session, self.session = self.session, None
        if session is not None:
            await session.close()


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
