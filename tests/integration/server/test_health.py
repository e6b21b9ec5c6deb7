"""The probes of ``metrics.listener``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from odradek.meters.health import LoopProbe
from odradek.meters.metrics_outlets import MetricsOutlets
from odradek.metrics.cluster_name import ClusterName
from support.hosts import ThreadedHost, running_host
from support.probes import get, outlets_of


@contextmanager
def host_with_probes(tmp_path: Path) -> Iterator[tuple[ThreadedHost, MetricsOutlets, int]]:
    with running_host(tmp_path, "metrics.listener=http://127.0.0.1:0") as host:
        yield host, *outlets_of(host)


def test_a_host_that_serves_is_alive_and_ready(tmp_path: Path) -> None:
    with host_with_probes(tmp_path) as (_, _, port):
        answers = [get(port, path) for path in ("/healthz", "/readyz")]

    assert answers == [(200, "ok\n")] * 2


def test_a_host_that_drains_is_alive_but_not_ready(tmp_path: Path) -> None:
    with host_with_probes(tmp_path) as (_, outlets, port):
        outlets.drain()

        answers = [get(port, path) for path in ("/healthz", "/readyz")]

    assert answers == [(200, "ok\n"), (503, "draining\n")]


def test_a_stop_drains_first(tmp_path: Path) -> None:
    with host_with_probes(tmp_path) as (_, outlets, _):
        before = outlets.draining

    assert (before, outlets.draining) == (False, True)


def test_a_host_without_logs_is_not_ready(tmp_path: Path) -> None:
    with host_with_probes(tmp_path) as (host, _, port):
        logs = host.host.logs
        (directory,) = logs.online
        host.call(lambda: logs.folders.take_offline(directory, "gone"))

        answers = [get(port, path) for path in ("/healthz", "/readyz")]

    assert answers == [(200, "ok\n"), (503, "all log directories are offline\n")]


def test_a_loop_that_stands_still_is_not_alive(tmp_path: Path) -> None:
    go_on = Event()
    with host_with_probes(tmp_path) as (_, outlets, port):
        assert outlets.loop_probe is not None
        outlets.loop_probe.timeout_s = 0.05
        loop = outlets.loop_probe.loop
        loop.call_soon_threadsafe(go_on.wait, 30)
        try:
            stuck = [get(port, path) for path in ("/healthz", "/readyz")]
        finally:
            go_on.set()
        outlets.loop_probe.timeout_s = 30

        after = get(port, "/readyz")

    assert stuck == [(503, "the event loop has not answered for 0.05 s\n")] * 2
    assert after == (200, "ok\n")


def test_a_closed_loop_is_not_alive() -> None:
    async def probe() -> LoopProbe:
        return LoopProbe()

    problem = asyncio.run(probe()).problem()

    assert problem == "the event loop is closed"


@pytest.mark.parametrize(("needs_plugins", "problem"), [(True, "forwarder otlp: ended"), (False, None)])
def test_a_plugin_that_fails_takes_clients_from_a_host_but_not_from_a_gateway(
    needs_plugins: bool, problem: str | None
) -> None:
    trouble = "forwarder otlp: ended"
    outlets = MetricsOutlets(
        list,
        ClusterName(),
        "gateway-1",
        {},
        lambda: None,
        trouble=lambda: trouble,
        needs_plugins=needs_plugins,
    )

    assert outlets.readiness() == problem
