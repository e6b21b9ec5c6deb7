"""The listener for scrapes, over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from odradek.endpoints import Address, ListenerTls
from odradek.security.private_ca import LOOPBACK, PrivateCa
from odradek.temporality import TotalsSettings
from odradek_prometheus import scrape_listener
from odradek_prometheus.client_series import ClientSeries
from odradek_prometheus.exposition import Exposition
from odradek_prometheus.scrape_forwarder import ScrapeForwarder
from odradek_prometheus.scrape_listener import Asked, ScrapeListener
from odradek_prometheus.scrape_settings import ScrapeSettings
from odradek_prometheus.text_format import Format
from support import loops
from support.certificates import authority, other_authority
from support.delta_clients import A, B, Scene, d
from support.exposed_clients import Exposed
from support.waiting import until


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Scraper:
    """A client of the listener."""

    def __init__(self, session: aiohttp.ClientSession, listener: ScrapeListener) -> None:
        self.session = session
        self.listener = listener
        self.url = f"http://127.0.0.1:{listener.port}"

    async def get(self, path: str = "/metrics", method: str = "GET", **headers: str) -> Answer:
        found = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.url + path, headers=found) as response:
            return Answer(response.status, dict(response.headers), await response.read())


@asynccontextmanager
async def scraped(clients: Callable[[], list[ClientSeries]], **settings: Any) -> AsyncIterator[Scraper]:
    totals = TotalsSettings(file=Path("unused"))
    listener = ScrapeListener(
        ScrapeSettings(address=Address("127.0.0.1", 0), totals=totals, **settings), clients
    )
    await listener.start()
    try:
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            yield Scraper(session, listener)
    finally:
        await listener.stop()


class TestForwarder:
    def test_clients_that_are_gone_are_freed_without_a_scraper(self, tmp_path: Path) -> None:
        settings = ScrapeSettings(
            address=Address("127.0.0.1", 0), totals=TotalsSettings(file=tmp_path / "totals.db")
        )
        exposition = Exposition(settings.exposition)
        forwarder = exposition.wrap(ScrapeForwarder(settings, exposition), settings.totals)

        async def live() -> None:
            await forwarder.start()
            await forwarder.deliver([Scene().record(d(5.0, 0, 60), instance=each) for each in (A, B)])
            await forwarder.close()

        loops.run(live())

        assert not exposition.clients()


def two_clients() -> list[ClientSeries]:
    exposed = Exposed()
    for instance in (A, B):
        exposed.push(d(5.0, 0, 60), instance=instance)
    return exposed.exposition.clients()


def run(scenario: Callable[[Scraper], Awaitable[None]], **settings: Any) -> None:
    clients = two_clients()

    async def live() -> None:
        async with asyncio.timeout(30), scraped(lambda: clients, **settings) as scraper:
            await scenario(scraper)

    loops.run(live())


def test_both_formats_with_and_without_gzip() -> None:
    async def scenario(scraper: Scraper) -> None:
        text = await scraper.get(Accept_Encoding="identity")
        metrics = await scraper.get(Accept="application/openmetrics-text", Accept_Encoding="gzip")

        assert text.status == metrics.status == 200
        assert text.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "Content-Encoding" not in text.headers
        assert text.body.count(b"\nc_total{") == 2
        assert metrics.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        assert metrics.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(metrics.body).endswith(b"\n# EOF\n")

    run(scenario)


def test_scrapers_at_the_same_time_get_the_same_bytes() -> None:
    async def scenario(scraper: Scraper) -> None:
        first, second = await asyncio.gather(scraper.get(), scraper.get())

        assert first.body == second.body

    run(scenario)


def test_shards_have_each_client_once() -> None:
    async def scenario(scraper: Scraper) -> None:
        pages = [
            (await scraper.get(f"/metrics?shard={shard}&shards=2", Accept_Encoding="identity")).body
            for shard in (0, 1)
        ]

        assert sum(body.count(b"\nc_total{") for body in pages) == 2

    run(scenario)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "GET", 404),
        ("/metrics", "POST", 405),
        ("/metrics", "HEAD", 200),
        ("/metrics?shard=2&shards=2", "GET", 400),
        ("/metrics?shard=x", "GET", 400),
        ("/metrics?shards=1001", "GET", 400),
    ],
)
def test_other_requests(path: str, method: str, status: int) -> None:
    async def scenario(scraper: Scraper) -> None:
        assert (await scraper.get(path, method)).status == status

    run(scenario)


def test_a_page_that_is_not_there_in_time_is_refused_as_a_whole() -> None:
    async def scenario(scraper: Scraper) -> None:
        assert (await scraper.get(X_Prometheus_Scrape_Timeout_Seconds="0")).status == 503

    run(scenario)


def test_pages_of_one_address_are_made_one_at_a_time_and_bounded() -> None:
    async def scenario(scraper: Scraper) -> None:
        listener, most = scraper.listener, scrape_listener.PAGES_PER_IP
        asked = [Asked(style=Format(), gzip=False, shard=shard, shards=100) for shard in range(100)]
        pages = [listener.page(each, "stranger") for each in asked[:most]]
        with pytest.raises(scrape_listener.Crowded):
            listener.page(asked[most], "stranger")
        shared = listener.page(asked[0], "stranger")
        other = listener.page(asked[most], "scraper")
        await other

        assert shared is pages[0]
        assert sum(each.done() for each in pages) <= 2
        await asyncio.gather(*pages)
        assert (listener.waiting.held, listener.lanes) == ({}, {})

    run(scenario)


def test_scrapes_that_do_not_wait_leave_a_bounded_number_of_pages_to_make() -> None:
    async def scenario(scraper: Scraper) -> None:
        hasty = {"X_Prometheus_Scrape_Timeout_Seconds": "0"}
        scraper.listener.waiting.most = 1
        async with scraper.listener.lanes.setdefault("127.0.0.1", asyncio.Lock()):
            answers = [await scraper.get(f"/metrics?shard={shard}&shards=9", **hasty) for shard in range(9)]
            made = len(scraper.listener.pages)

        assert {each.status for each in answers} == {503}
        assert made == 1
        assert answers[-1].body == b"16 other pages are being made for this address\n"

    run(scenario)


def test_one_of_several_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("old\nnew\n")

    async def scenario(scraper: Scraper) -> None:
        none = await scraper.get()
        wrong = await scraper.get(Authorization="Bearer newer")
        right = await scraper.get(Authorization="Bearer new")
        file.write_text("newer\n")
        renewed = await scraper.get(Authorization="Bearer newer")

        assert [each.status for each in (none, wrong, right, renewed)] == [401, 401, 200, 200]
        assert none.headers["WWW-Authenticate"] == "Bearer"

    run(scenario, token_file=file)


def test_a_user_with_a_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("prometheus:secret")

    async def scenario(scraper: Scraper) -> None:
        none = await scraper.get()
        right = await scraper.get(Authorization="Basic cHJvbWV0aGV1czpzZWNyZXQ=")

        assert [each.status for each in (none, right)] == [401, 200]
        assert none.headers["WWW-Authenticate"].startswith("Basic")

    run(scenario, basic_file=file)


def test_connections_beyond_the_limit_are_closed() -> None:
    async def scenario(scraper: Scraper) -> None:
        async with scraper.session.get(scraper.url + "/metrics") as kept:
            await kept.read()
            other = aiohttp.ClientSession()
            with pytest.raises(aiohttp.ClientConnectionError):
                await Scraper(other, _Port(scraper.url)).get()  # type: ignore[arg-type]
            await other.close()

    run(scenario, connections_max=1)


async def is_served(scraper: Scraper, tls: ssl.SSLContext) -> bool:
    """Whether a client that trusts the listener gets a page over TLS."""
    url = scraper.url.replace("http://127.0.0.1", "https://localhost") + "/metrics"
    connector = aiohttp.TCPConnector(ssl=tls, family=socket.AF_INET)
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            async with session.get(url) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False


def test_a_handshake_that_does_not_come_counts_as_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_listener, "HANDSHAKE_S", 0.5)
    key_store = tmp_path / "listener.pem"
    key_store.write_text(authority().issue("localhost", LOOPBACK).both)
    tls = ssl.create_default_context(cadata=authority().issued.certificate)

    async def is_served_beside_a_silent_one(scraper: Scraper) -> bool:
        _, silent = await asyncio.open_connection("127.0.0.1", int(scraper.url.rpartition(":")[2]))
        try:
            return await is_served(scraper, tls)
        finally:
            silent.close()

    async def scenario(scraper: Scraper) -> None:
        assert not await is_served_beside_a_silent_one(scraper)
        while not await is_served(scraper, tls):
            await asyncio.sleep(0.05)

    run(scenario, connections_max=1, tls=ListenerTls(certificate=key_store))


class _Port(NamedTuple):
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def test_a_page_is_forgotten_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrape_listener, "SHARED_S", 0.0)
    clients = two_clients()

    async def scenario() -> list[int]:
        async with asyncio.timeout(30), scraped(lambda: clients) as scraper:
            before = await scraper.get(Accept_Encoding="identity")
            await until(lambda: not scraper.listener.pages)
            clients.pop()
            after = await scraper.get(Accept_Encoding="identity")
        return [page.body.count(b"\nc_total{") for page in (before, after)]

    assert loops.run(scenario()) == [2, 1]


def test_within_the_second_a_page_is_that_of_the_scraper_before() -> None:
    clients = two_clients()

    async def scenario() -> list[bytes]:
        async with asyncio.timeout(30), scraped(lambda: clients) as scraper:
            before = await scraper.get()
            clients.pop()
            return [before.body, (await scraper.get()).body]

    before, after = loops.run(scenario())
    assert before == after


def test_the_files_of_tls_may_be_renewed(tmp_path: Path) -> None:
    key_store, ca = tmp_path / "listener.pem", tmp_path / "scrapers.pem"

    def use(issuer: PrivateCa) -> None:
        key_store.write_text(issuer.issue("localhost", LOOPBACK).both)
        ca.write_text(issuer.issued.certificate)

    def scraper_of(issuer: PrivateCa) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=issuer.issued.certificate)
        file = tmp_path / "scraper.pem"
        file.write_text(issuer.issue("scraper").both)
        context.load_cert_chain(file)
        return context

    async def scenario(scraper: Scraper) -> None:
        ours, theirs = scraper_of(authority()), scraper_of(other_authority())
        found = [await is_served(scraper, each) for each in (ours, theirs)]
        use(other_authority())
        found += [await is_served(scraper, each) for each in (ours, theirs)]

        assert found == [True, False, False, True]

    use(authority())
    run(scenario, tls=ListenerTls(certificate=key_store, client_ca=ca))
