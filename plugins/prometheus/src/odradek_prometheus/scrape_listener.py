"""The HTTP server that Prometheus scrapes.

A page is rendered on a thread of its own, one of each address at a time. Scrapes of one format that come
within a second of each other get the same bytes. A page is sent when all of it is there: a scraper gets a
whole page or an error.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from odradek.endpoints import Credentials, RenewedTls, SecretKind, Shares, holder_of, read_tokens
from odradek.endpoints.http_server import BoundedServer
from odradek.temporality.budgets.folding import Folding
from odradek.temporality.budgets.ranking import BY, report
from odradek_prometheus.client_series import ClientSeries
from odradek_prometheus.negotiation import chosen_format, takes_gzip
from odradek_prometheus.scrape_settings import ScrapeSettings
from odradek_prometheus.text_format import Format, Page

log = logging.getLogger(__name__)

PATH: Final = "/metrics"
CARDINALITY_PATH: Final = "/cardinality"
USUAL_ROWS: Final = 20
MAX_ROWS: Final = 1_000
SHARED_S: Final = 1.0
"""Scrapes within this time get the same page."""
MOST_SHARDS: Final = 1_000
PAGES_PER_IP: Final = 16
"""Different pages that are made, or wait, for one address."""
TIMEOUT_HEADER: Final = "X-Prometheus-Scrape-Timeout-Seconds"
TIMEOUT_SHARE: Final = 0.9
"""Share of a scraper's time in which the page has to be there; the rest is for sending it."""
HANDSHAKE_S: Final = 10.0
IDLE_S: Final = 75.0
GRACE_S: Final = 0.3
GZIP: Final = 31
"""The window bits of zlib for gzip."""
Snapshot = Callable[[], Sequence[ClientSeries]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The page that a scraper asks for. Equal requests get the same page."""

    style: Format
    gzip: bool
    shard: int
    shards: int


class Crowded(Exception):
    """An address asks for too many different pages."""


class ScrapeListener:
    """One address.

    Args:
        settings: The settings.
        snapshot: The pictures of all clients now; called on the loop.
        foldings: The budgets of the engines; called on the loop.
    """

    def __init__(
        self,
        settings: ScrapeSettings,
        snapshot: Snapshot,
        foldings: Callable[[], Sequence[Folding]] = tuple,
    ) -> None:
        self.settings = settings
        self.foldings = foldings
        self.snapshot = snapshot
        self.tls = RenewedTls(settings.tls) if settings.tls is not None else None
        basic = settings.basic_file
        self.basic = Credentials({}, {SecretKind.BASIC: basic}) if basic is not None else None
        self.threads: ThreadPoolExecutor | None = None
        self.server: BoundedServer | None = None
        self.listening: asyncio.Server | None = None
        self.pages: dict[Asked, tuple[float, asyncio.Task[list[bytes]]]] = {}
        self.waiting = Shares(PAGES_PER_IP)
        self.lanes: dict[str, asyncio.Lock] = {}
        """Held while a page of an address is rendered: those of others do not wait for all of its pages."""
        self.port = 0

    async def start(self) -> None:
        """Listen. A second start begins again.

        Raises:
            OSError: The address is in use, or a file of TLS cannot be read.
        """
        await self.stop()
        self.threads = ThreadPoolExecutor(1, thread_name_prefix="scrape")
        loop = asyncio.get_running_loop()
        self.server = BoundedServer(
            self.handle,
            loop=loop,
            connections_max=self.settings.connections_max,
            connections_max_per_ip=self.settings.connections_max_per_ip,
            tls=self.tls.context() if self.tls is not None else None,
            handshake_s=HANDSHAKE_S,
            access_log=None,
            keepalive_timeout=IDLE_S,
        )
        host, port = self.settings.address
        self.listening = await loop.create_server(self.server.accept, self.settings.address.hosts, port)
        self.port = int(self.listening.sockets[0].getsockname()[1])
        log.info("client metrics are served", extra={"host": host, "port": self.port, "path": PATH})

    async def stop(self) -> None:
        """Close the port and the connections."""
        if self.listening is not None:
            self.listening.close()
        if self.server is not None:
            await self.server.shutdown(GRACE_S)
        for _, page in self.pages.values():
            page.cancel()
        self.pages.clear()
        if self.threads is not None:
            self.threads.shutdown(wait=False, cancel_futures=True)
        self.listening = self.server = self.threads = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        refused = self.refused(request)
        if refused is not None:
            return refused
        if request.path == CARDINALITY_PATH:
            return self.ranked(request)
        try:
            asked = self.asked(request)
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")
        try:
            async with asyncio.timeout(self.timeout_s(request)):
                page = await asyncio.shield(self.page(asked, holder_of(request.remote or "")))
        except TimeoutError:
            return web.Response(status=503, text="the page was not complete in time\n")
        except Crowded:
            text = f"{PAGES_PER_IP} other pages are being made for this address\n"
            return web.Response(status=503, text=text, headers={"Retry-After": "1"})
        try:
            async with asyncio.timeout(self.settings.timeout_ms / 1000):
                return await self.send(request, asked, page)
        except TimeoutError:
            # A scraper that does not read must not hold the page.
            if request.transport is not None:
                request.transport.abort()
            raise

    def refused(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a request for anything else, or without a right; None for the others."""
        if request.path not in (PATH, CARDINALITY_PATH):
            return web.Response(status=404, text=f"the metrics of clients are at {PATH}\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, headers={"Allow": "GET, HEAD"})
        if not self.is_allowed(request.headers.get("Authorization", "")):
            scheme = 'Basic realm="metrics"' if self.settings.token_file is None else "Bearer"
            return web.Response(status=401, headers={"WWW-Authenticate": scheme})
        return None

    def ranked(self, request: web.BaseRequest) -> web.Response:
        """Answer with the origins of the series, as JSON."""
        by = request.query.get("by", BY[0])
        most = request.query.get("n", str(USUAL_ROWS))
        if by not in BY or not most.isdecimal() or int(most) > MAX_ROWS:
            problem = f"by is one of {', '.join(BY)}, and n a number up to {MAX_ROWS}\n"
            return web.Response(status=400, text=problem)
        now_ms = time.time_ns() // 1_000_000
        found = report(self.foldings(), by, int(most), now_ms)
        return web.json_response(found)

    async def send(self, request: web.BaseRequest, asked: Asked, page: Sequence[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": asked.style.content_type})
        response.headers["Vary"] = "Accept, Accept-Encoding"
        if asked.gzip:
            response.headers["Content-Encoding"] = "gzip"
        response.content_length = sum(map(len, page))
        await response.prepare(request)
        if request.method == "GET":
            for piece in page:
                await response.write(piece)
        await response.write_eof()
        return response

    def is_allowed(self, authorization: str) -> bool:
        """Whether a scraper may have the page."""
        if self.settings.token_file is None and self.basic is None:
            return True
        given = authorization.encode("utf-8", "replace")
        expected: list[bytes] = []
        if self.settings.token_file is not None:
            try:
                expected += [b"Bearer " + token for token in read_tokens(self.settings.token_file)]
            except (OSError, ValueError) as error:
                log.warning("tokens of scrapers cannot be read", extra={"problem": str(error)})
        if self.basic is not None:
            expected.append(self.basic.request_headers()["authorization"].encode())
        return any(hmac.compare_digest(given, each) for each in expected)

    def asked(self, request: web.BaseRequest) -> Asked:
        """The page that a scraper asks for.

        Raises:
            ValueError: It asks for a shard that does not exist.
        """
        style = chosen_format(
            request.headers.get("Accept", ""), utf8=self.settings.utf8, created=self.settings.created
        )
        try:
            shard, shards = int(request.query.get("shard", "0")), int(request.query.get("shards", "1"))
        except ValueError:
            raise ValueError("shard and shards are whole numbers") from None
        if not 0 <= shard < shards <= MOST_SHARDS:
            raise ValueError(f"shard is from 0 to below shards, which are at most {MOST_SHARDS}")
        return Asked(style, takes_gzip(request.headers.get("Accept-Encoding", "")), shard, shards)

    def timeout_s(self, request: web.BaseRequest) -> float:
        """The time for the page."""
        try:
            asked_s = float(request.headers.get(TIMEOUT_HEADER, "inf"))
        except ValueError:
            asked_s = float("inf")
        return max(0.0, min(self.settings.timeout_ms / 1000, TIMEOUT_SHARE * asked_s))

    def page(self, asked: Asked, holder: str) -> asyncio.Task[list[bytes]]:
        """The page, which may have been made for another scraper.

        Raises:
            Crowded: It has to be made, and too many others wait for this address.
        """
        loop = asyncio.get_running_loop()
        known = self.pages.get(asked)
        if known is not None and (not known[1].done() or loop.time() - known[0] < SHARED_S):
            return known[1]
        if not self.waiting.take(holder):
            raise Crowded
        page = loop.create_task(self.made(asked, holder))
        self.pages[asked] = (loop.time(), page)
        page.add_done_callback(lambda _: self.settled(asked, holder, page))
        return page

    async def made(self, asked: Asked, holder: str) -> list[bytes]:
        """Make a page, when the one before it of the same address is made."""
        async with self.lanes.setdefault(holder, asyncio.Lock()):
            clients = [each for each in self.snapshot() if in_shard(each.instance_id, asked)]
            now_ms = time.time_ns() // 1_000_000
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self.threads, rendered, clients, now_ms, asked, self.settings.compatible
            )

    def settled(self, asked: Asked, holder: str, page: asyncio.Task[list[bytes]]) -> None:
        """A page is made: it is shared for a moment."""
        self.waiting.give_back(holder)
        if holder not in self.waiting.held:
            self.lanes.pop(holder, None)
        asyncio.get_running_loop().call_later(SHARED_S, self.forget, asked, page)

    def forget(self, asked: Asked, page: asyncio.Future[list[bytes]]) -> None:
        """Free a page that is too old to be shared."""
        known = self.pages.get(asked)
        if known is not None and known[1] is page:
            del self.pages[asked]


def in_shard(instance_id: bytes, asked: Asked) -> bool:
    return asked.shards == 1 or zlib.crc32(instance_id) % asked.shards == asked.shard


def rendered(
    clients: Sequence[ClientSeries], now_ms: int, asked: Asked, exporters: Sequence[str] = ()
) -> list[bytes]:
    """The pieces of a page."""
    pieces = Page(clients, now_ms, asked.style, exporters).pieces()
    if not asked.gzip:
        return list(pieces)
    compressor = zlib.compressobj(1, wbits=GZIP)
    found = [compressor.compress(piece) for piece in pieces]
    return [*(piece for piece in found if piece), compressor.flush()]
