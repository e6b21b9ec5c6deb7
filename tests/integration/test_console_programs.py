"""A host whose destination is down, and a gateway before it, as the console reads their metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek_console.reading.programs import Programs
from support.gateway_workers import workers_of
from support.hosts import running_host
from support.probes import metrics_port
from support.spooling import payload
from support.waiting import wait_until
from support.wire_client import WireClient

pytest.importorskip("odradek_otlp")
TOKEN = "the-token-of-the-metrics"
CLOSED = "http://127.0.0.1:9"


def test_a_host_tells_why_its_destination_takes_nothing(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    settings = (
        "metrics.listener=http://127.0.0.1:0",
        f"metrics.listener.token={TOKEN}",
        f"plugins.otlp.endpoint={CLOSED}",
    )
    with running_host(tmp_path / "data", *settings) as host:
        url = f"http://127.0.0.1:{metrics_port(host)}"
        programs, stranger = Programs([url], token=token), Programs([url])
        with WireClient(host.address) as client:
            client.introduce()
            assert client.push(payload(1)) == 0

        def is_failing() -> bool:
            programs.ask()
            found = programs.destinations()
            return bool(found) and bool(found[0].error)

        wait_until(is_failing, programs.destinations)
        stranger.ask()
        (row,), (destination,) = programs.rows(), programs.destinations()

    assert (row.kind, row.state, row.switch, row.clients) == ("host", "up", "", None)
    assert row.version
    assert row.memory_bytes is not None
    assert row.memory_bytes > 1 << 20
    assert row.uptime_s is not None
    assert (destination.destination, destination.delivered) == ("otlp", 0)
    assert destination.waiting >= 1
    assert "Cannot connect to host 127.0.0.1:9" in destination.error
    assert stranger.rows()[0].state == "it needs a token: --program-token-file"


def test_a_gateway_with_workers_has_their_names_and_its_switch(tmp_path: Path) -> None:
    with (
        running_host(tmp_path / "host") as host,
        workers_of(host.bootstrap, tmp_path / "gateway", "gateway.name=east") as gateway,
    ):
        gateway.wait_ready(2)
        programs = Programs([f"http://127.0.0.1:{gateway.metrics_port}"])

        def is_up() -> bool:
            programs.ask()
            return programs.rows()[0].state == "up"

        wait_until(is_up, programs.rows)
        (row,) = programs.rows()

    assert (row.name, row.kind, row.switch) == ("east", "gateway", "full")
    assert row.gateways == ("east", "east-1")
    assert row.memory_bytes is not None
    assert row.memory_bytes > 3 * (20 << 20)
