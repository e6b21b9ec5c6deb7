"""The origins of series: the listener's answer, and the command that asks for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from odradek.cli.main import cli
from odradek.endpoints import Address
from odradek.temporality import TotalsSettings
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.scrape_listener import ScrapeListener
from odradek_prometheus.scrape_settings import ScrapeSettings
from support.delta_clients import A, B, d, ms
from support.exposed_clients import Exposed


class Asker:
    """A client of the listener."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body."""
        async with self.session.get(self.url + path) as response:
            return response.status, await response.text()


@asynccontextmanager
async def listening(exposed: Exposed, **settings: Any) -> AsyncIterator[Asker]:
    address, totals = Address("127.0.0.1", 0), TotalsSettings(file=Path("unused"))
    listener = ScrapeListener(
        ScrapeSettings(address=address, totals=totals, **settings),
        exposed.exposition.clients,
        lambda: exposed.exposition.foldings(ms(61)),
    )
    await listener.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Asker(session, f"http://127.0.0.1:{listener.port}")
    finally:
        await listener.stop()


def run(exposed: Exposed, scenario: Callable[[Asker], Awaitable[None]], **settings: Any) -> None:
    async def live() -> None:
        async with asyncio.timeout(60), listening(exposed, **settings) as asker:
            await scenario(asker)

    asyncio.run(live())


def test_where_the_series_come_from() -> None:
    exposed = Exposed()
    for instance in (A, B):
        exposed.push(d(5.0, 0, 60, topic="a"), instance=instance)

    async def scenario(asker: Asker) -> None:
        status, body = await asker.get("/cardinality?by=metric&n=5")
        unknown, _ = await asker.get("/cardinality?by=shoe")
        many, _ = await asker.get("/cardinality?n=1001")

        assert status == 200
        report = json.loads(body)
        assert report["series"] == report["clients"] == 2
        assert report["top"][0] | {"new_per_hour": 0} == {
            "name": "c", "principal": "", "series": 2, "share": 1.0, "new_per_hour": 0, "clients": 0,
            "label": "topic", "values": 1, "example": "topic=a",
        }  # fmt: skip
        assert [each["budget"] for each in report["budgets"]] == ["all", "principal", "app"]
        assert (unknown, many) == (400, 400)

    run(exposed, scenario)


def test_the_command_asks_the_listener(tmp_path: Path) -> None:
    exposed = Exposed(budgets=BudgetLimits(app_series=1, series=10))
    for instance in (A, B):
        exposed.push(d(5.0, 0, 60, topic="a"), instance=instance)
    token = tmp_path / "token"
    token.write_text("secret\n")

    async def scenario(asker: Asker) -> None:
        command = ["cardinality", "top", "--url", asker.url]
        allowed = [*command, "--token-file", str(token)]
        table = await asyncio.to_thread(CliRunner().invoke, cli, allowed)
        as_json = await asyncio.to_thread(CliRunner().invoke, cli, [*allowed, "--by", "metric", "--json"])
        refused = await asyncio.to_thread(CliRunner().invoke, cli, command)

        assert table.exit_code == 0, table.output
        assert table.output.splitlines() == [
            "2 series of 2 clients",
            "budget all: 2 of 10 series, 20%",
            "budget principal User:ANONYMOUS: 2 of 100000 series, 0%",
            "budget app User:ANONYMOUS/orders: 2 of 1 series, 200%",
            "over budget app: 1 streams part of others",
            "",
            "APP    PRINCIPAL      SERIES SHARE  NEW-PER-HOUR CLIENTS EXAMPLE",
            "orders User:ANONYMOUS 2      100.0% -            2       orders",
        ]
        assert json.loads(as_json.output)["top"][0]["name"] == "c"
        assert str(refused.exception) == f"{asker.url} wants a token: --token-file has one"

    run(exposed, scenario, token_file=token)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://host", "expected http://HOST:PORT or https://HOST:PORT"),
        ("http://host:x", "expected http://HOST:PORT or https://HOST:PORT"),
        ("http://127.0.0.1:1", "The listener of [plugins.prometheus] counts the series"),
    ],
)
def test_the_command_without_a_listener(url: str, problem: str) -> None:
    result = CliRunner().invoke(cli, ["cardinality", "top", "--url", url])

    assert result.exit_code == 1
    assert problem in str(result.exception)
