"""The probes of ``metrics.listener``."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from odradek.server.meters.health import LoopProbe
from odradek.server.meters.metrics_outlets import MetricsOutlets
from support.hosts import ThreadedHost, running_host


def get(port: int, path: str) -> tuple[int, str]:
    """The status and the text of an answer; a connection that is refused has status 0."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except urllib.error.URLError:
        return 0, ""


def outlets_of(host: ThreadedHost) -> tuple[MetricsOutlets, int]:
    outlets = host.host.outlets
    assert outlets.endpoint is not None
    return outlets, outlets.endpoint.bound_port


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
        outlets.draining = True

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
