"""The part of one worker in the settings of a gateway, and its channel to the parent."""

from __future__ import annotations

import asyncio
import json
import math
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odradek.hosting.active_plugin import ActivePlugin, PluginState
from odradek.hosting.plugin_manager import InstalledPlugin
from odradek.metrics.metric import MetricRow
from odradek.plugin import TelemetryRecord
from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig, load_config
from odradek.programs.gateway_workers.link import Assignment, ParentLink
from odradek.programs.gateway_workers.share import (
    check_plugins,
    check_workers,
    folder_of,
    former_workers,
    shared,
)
from odradek.programs.gateway_workers.worker import Problems, Worker
from odradek.temporality import CumulativeForwarder, TotalsSettings
from odradek.waiting.clock import SystemClock
from odradek.wire.limits import INT32_MAX

PORT = "listeners=PLAINTEXT://127.0.0.1:9192"


def config(*settings: str, workers: int = 4) -> HostConfig:
    return load_config(None, (f"gateway.workers={workers}", PORT, *settings))


@pytest.mark.parametrize("workers", [0, 65])
def test_the_number_of_workers_is_bounded(workers: int) -> None:
    with pytest.raises(ConfigError, match=r"gateway\.workers: expected a whole number from 1 to 64"):
        config(workers=workers)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("listeners=PLAINTEXT://127.0.0.1:0", r"gateway\.workers: expected a port"),
        ("gateway.client.metrics=own", r"gateway\.client\.metrics: expected pass"),
    ],
)
def test_what_several_workers_cannot_do_stops_the_start(setting: str, problem: str) -> None:
    check_workers(config(setting, workers=1))
    with pytest.raises(ConfigError, match=problem):
        check_workers(config(setting))


def test_the_first_worker_has_the_folders_and_the_name_of_a_gateway_without_workers() -> None:
    settings = ("data.dir=d", "log.dirs=a,b", "gateway.name=edge", "plugins.otlp.totals.file=t/totals.db")
    found = [shared(config(*settings), worker) for worker in (0, 2)]
    assert [each.data_dir for each in found] == [Path("d"), Path("d/workers/2")]
    assert [each.log_dirs for each in found] == [
        (Path("a"), Path("b")),
        (Path("a/workers/2"), Path("b/workers/2")),
    ]
    assert [each.gateway.own_telemetry.name for each in found] == ["edge", "edge-2"]
    assert [each.plugins["otlp"]["totals.file"] for each in found] == ["t/totals.db", "t/totals-2.db"]
    assert all(each.gateway.reuse_port for each in found)
    assert not shared(config(workers=1), 0).gateway.reuse_port


def test_limits_of_the_gateway_are_divided_and_those_of_addresses_are_not() -> None:
    settings = (
        "max.connections=10",
        "max.connections.per.ip=3",
        "listener.name.plaintext.max.connections=6",
        "gateway.memory.max=4096",
        "queued.max.request.bytes=2000000",
        "socket.request.max.bytes=1000000",
    )
    found = shared(config(*settings), 1)
    limits = found.connections
    assert (limits.max_connections, limits.creation_rate, limits.max_connections_per_ip) == (3, INT32_MAX, 3)
    assert limits.listener_connections("PLAINTEXT") == 2
    assert found.gateway.memory_bytes == 1024
    assert found.memory.request_bytes == 1_000_000  # the largest request fits in
    assert 4 * shared(config(), 1).memory.response_bytes >= 64 << 20
    found.check()


def test_metrics_leave_through_the_parent_alone() -> None:
    found = shared(config("metrics.listener=http://127.0.0.1:9", "metrics.otlp.endpoint=http://c:1"), 0)
    assert (found.metrics_listener, found.metrics_push.endpoint) == (None, None)


class Scraped:
    """A forwarder that listens."""

    listens = "here:9464"

    async def start(self) -> None: ...
    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None: ...
    async def close(self) -> None: ...


def test_a_forwarder_that_listens_stops_the_start_also_with_totals() -> None:
    installed = InstalledPlugin(name="scrape", distribution="odradek-scrape", version="1")
    for forwarder in (Scraped(), CumulativeForwarder(Scraped(), TotalsSettings())):
        plugin = ActivePlugin(installed, PluginState.ACTIVE, forwarders={"scrape": forwarder})
        with pytest.raises(ConfigError, match=r"plugins\.scrape: the forwarder scrape listens on here:9464"):
            check_plugins([plugin])
    check_plugins([ActivePlugin(installed, PluginState.ACTIVE)])


def test_former_workers_are_those_with_a_folder_beyond_the_number(tmp_path: Path) -> None:
    given = config(f"data.dir={tmp_path}", workers=2)
    assert former_workers(given) == []
    for name in ("1", "2", "10", "lost+found"):
        (tmp_path / "workers" / name).mkdir(parents=True)
    assert former_workers(given) == [2, 10]
    assert former_workers(replace(given, gateway=replace(given.gateway, workers=1))) == [1, 2, 10]
    assert folder_of(tmp_path, 10) == tmp_path / "workers" / "10"


def test_an_assignment_is_read_to_its_end_and_no_further() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(Assignment(worker=3, steps=2).line() + b"more")
        assert Assignment.received(theirs) == Assignment(worker=3, steps=2)
        assert theirs.recv(10) == b"more"
        ours.close()
        with pytest.raises(ConfigError, match="--worker"):
            Assignment.received(theirs)


class Asked:
    """A worker with some metric rows, which is not ready."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def metric_rows(self) -> Iterator[MetricRow]:
        for number in range(self.rows):
            yield MetricRow("a", {"n": str(number)}, number or math.nan)
        if not self.rows:
            raise ValueError("a bug")

    def topology_rows(self) -> Iterator[Mapping[str, Any]]:
        for number in range(self.rows):
            yield {"topic": str(number)}

    def not_ready(self) -> str | None:
        return "no broker"

    def trouble(self) -> str | None:
        return "forwarder otlp: ended"


async def linked(asked: Asked, steps: list[None], worker: Worker) -> ParentLink:
    """A worker and its parent in one process."""
    ours, theirs = socket.socketpair()
    link = ParentLink(theirs, asked, lambda: steps.append(None), lambda: None)
    reader, worker.writer = await asyncio.open_unix_connection(sock=ours)
    worker.reading = asyncio.create_task(worker.read(reader, worker.writer))
    await link.start(["A://b:1"])
    await asyncio.wait_for(worker.changed.wait(), 5)
    return link


@pytest.mark.parametrize("rows", [0, 1, 1203])
def test_a_parent_gets_metrics_and_states_of_a_worker_until_it_ends(rows: int) -> None:
    steps: list[None] = []

    async def talk() -> None:
        worker = Worker(lambda: Assignment(worker=1), [], SystemClock())
        link = await linked(Asked(rows), steps, worker)
        assert worker.addresses == ["A://b:1"]
        found = await worker.metric_rows()
        assert [row.attributes for row in found] == [
            {"n": str(number), "gateway_worker": "1"} for number in range(rows)
        ]
        assert await worker.topology_rows() == [{"topic": str(number)} for number in range(rows)]
        worker.tell({"do": "step"})
        problems = Problems(None, "worker 1: no broker", "worker 1: forwarder otlp: ended")
        assert await worker.problems() == problems
        asking = asyncio.create_task(worker.problems())
        await link.close()
        assert await asyncio.wait_for(asking, 5) in (Problems(), problems)
        assert worker.reading is not None
        await worker.reading
        assert worker.addresses is None

    asyncio.run(talk())
    assert len(steps) == 1


def test_a_message_is_one_line() -> None:
    assert json.loads(Assignment(worker=0).line()) == {"worker": 0, "steps": 0}
