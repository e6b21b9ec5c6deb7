"""The Prometheus of ``odradek demo --prometheus``: scrapes the demo's host, and is asked at the end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import shutil
import socket
import time
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import click

from odradek.demo.child import child, last_words
from odradek.demo.security import PRODUCER

PROGRAM: Final = "prometheus"
RECORDS: Final = "io_odradek_observed_client_produce_records_total"
RATE: Final = f"sum by (client_id) (rate({RECORDS}[10s]))"
TOTAL: Final = f'sum(last_over_time({RECORDS}{{client_id="{PRODUCER}"}}[5m]))'
START_S, REQUEST_S = 30.0, 5.0
SETTLE_S: Final = 10.0
"""Limit of the wait for the last scrape."""
CONFIG: Final = """\
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: odradek
    static_configs: [{{targets: ["{target}"]}}]
"""


def program_of(name: str) -> Path:
    """The program, by its path or its name in PATH.

    Raises:
        click.UsageError: There is none.
    """
    found = shutil.which(name)
    if found is None:
        where = "" if "/" in name else " in PATH"
        raise click.UsageError(
            f"--prometheus: no program {name!r}{where}. Get Prometheus from https://prometheus.io/download, "
            "or build it with Go in a checkout, without its web page: "
            "python -m contrib.prometheus.prometheus prints its path. "
            "Then: odradek demo --prometheus PATH"
        )
    return Path(found)


class DemoPrometheus:
    """Runs Prometheus in a child process.

    Args:
        program: The program.
        folder: A temporary folder for its configuration, data and log.
    """

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.scraped, self.port = free_ports(2)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self) -> list[str]:
        """The settings of the host: it counts the records of clients, and has a listener for scrapes."""
        return [
            f"plugins.prometheus.listener=http://127.0.0.1:{self.scraped}",
            f"plugins.prometheus.totals.file={self.folder / 'totals.db'}",
            "telemetry.observe=all",
        ]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start it and wait until it is ready; stop it at the end.

        Raises:
            click.ClickException: It does not start; has its last words.
        """
        config, log = self.folder / "prometheus.yml", self.folder / "prometheus.log"
        config.write_text(CONFIG.format(target=f"127.0.0.1:{self.scraped}"), encoding="utf-8")
        command = (
            self.program,
            f"--config.file={config}",
            f"--storage.tsdb.path={self.folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        )
        async with child(command, log) as process:
            end_s = time.monotonic() + START_S
            while not await asyncio.to_thread(self.is_ready):
                if process.returncode is not None or time.monotonic() > end_s:
                    raise click.ClickException(f"{self.program} does not start: {last_words(log)}")
                await asyncio.sleep(0.1)
            yield

    def is_ready(self) -> bool:
        try:
            return self.get("/-/ready")[0] == http.client.OK
        except OSError:
            return False

    def lines(self) -> list[str]:
        """The address and a query, for the time of the demo."""
        return [f"Prometheus on {self.url} until the demo ends; the records per second:", f"  {RATE}"]

    async def report(self, produced: int) -> str:
        """Say how much Prometheus has, once it has everything that was produced, or time is up."""
        end_s = time.monotonic() + SETTLE_S
        while (found := await asyncio.to_thread(self.value, TOTAL)) != produced and time.monotonic() < end_s:
            await asyncio.sleep(0.2)
        series = await asyncio.to_thread(self.value, 'count(last_over_time({client_id!=""}[5m]))')
        return f"Prometheus: {found:.0f} records of {PRODUCER}, {series:.0f} series of clients"

    def value(self, query: str) -> float:
        """The value of a query for one number; 0 if there is none.

        Raises:
            click.ClickException: Prometheus does not answer.
        """
        try:
            _, body = self.get(f"/api/v1/query?{urllib.parse.urlencode({'query': query})}")
        except OSError as error:
            raise click.ClickException(f"Prometheus on {self.url} does not answer: {error}") from error
        rows = json.loads(body)["data"]["result"]
        return float(rows[0]["value"][1]) if rows else 0.0

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of an answer."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_S)) as to:
            to.request("GET", path)
            answer = to.getresponse()
            return answer.status, answer.read()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that no program uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
