"""Bugs of a forwarder: the log has the traceback, probes name the plugin, and nothing is lost in silence."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import (
    ClientTelemetryPayload,
    PluginConfig,
    RequestContext,
    Retry,
    TelemetryRecord,
    hookimpl,
)
from support.hosts import running_host
from support.probes import get, outlets_of
from support.spooling import FarSide, hosting, push_all
from support.telemetry_records import telemetry_record
from support.waiting import wait_until

QUICK = ForwarderSettings(
    batch_max_records=4,
    batch_max_age_ms=5,
    retry_backoff_ms=1,
    retry_backoff_max_ms=4,
    deliver_timeout_ms=2_000,
    failure_max_attempts=2,
)


def bug(_batch: object = None) -> object:
    teams: dict[str, str] = {}
    return teams["team"]


class Starting(FarSide):
    """Its start runs the next line of a script, and works after the last one."""

    def __init__(self, *script: Callable[[], object]) -> None:
        super().__init__()
        self.script = list(script)
        self.closed = 0

    async def start(self) -> None:
        if self.script:
            answer = self.script.pop(0)()
            if answer is not None:
                await answer  # type: ignore[misc]

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def running(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., ForwarderRunner]]:
    caplog.set_level(logging.INFO)
    started: list[ForwarderRunner] = []

    def run(forwarder: FarSide, settings: ForwarderSettings = QUICK) -> ForwarderRunner:
        runner = ForwarderRunner("fake", forwarder, settings)
        started.append(runner)
        runner.start()
        return runner

    yield run
    for runner in started:
        runner.stop(1.0)
        assert runner.stats().balanced


def lines(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if message in record.getMessage()]


def test_a_bug_in_deliver_is_told_with_its_traceback_and_given_up_with_a_line(
    running: Callable[..., ForwarderRunner], caplog: pytest.LogCaptureFixture
) -> None:
    far_side = FarSide(bug)
    runner = running(far_side)

    runner.offer(telemetry_record(b"a"))
    wait_until(lambda: runner.stats().dropped, runner.stats)

    (told,) = lines(caplog, "plugin fake failed in deliver: KeyError: 'team' (")
    assert told["exc_info"][0] is KeyError
    assert (told["plugin"], told["problem"], told["records"]) == ("fake", "KeyError: 'team'", 1)
    (lost,) = lines(caplog, "pushes are given up and dropped")
    assert (lost["plugin"], lost["reason"], lost["records"]) == ("fake", "failure.max.attempts", 1)
    assert lost["problem"] == "KeyError: 'team'"
    assert not lines(caplog, "is down, trying again")
    assert runner.problem() == "deliver raised KeyError: 'team'"


def test_a_plugin_that_delivers_again_is_healthy(
    running: Callable[..., ForwarderRunner], caplog: pytest.LogCaptureFixture
) -> None:
    far_side = FarSide(bug)
    runner = running(far_side)
    runner.offer(telemetry_record(b"a"))
    wait_until(runner.problem, runner.stats)

    far_side.behavior = lambda batch: None
    runner.offer(telemetry_record(b"b"))
    wait_until(lambda: runner.stats().delivered, runner.stats)

    assert runner.problem() is None
    assert len(lines(caplog, "plugin fake delivers again")) == 1


def test_an_error_that_cannot_be_printed_ends_nothing(running: Callable[..., ForwarderRunner]) -> None:
    class Mute(Retry):
        def __str__(self) -> str:
            raise ValueError("no text")

    class Bug(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    errors: list[Exception] = [Mute("x"), Bug()]

    def raise_next(_batch: Sequence[TelemetryRecord]) -> None:
        if errors:
            raise errors.pop(0)

    runner = running(FarSide(raise_next))
    runner.offer(telemetry_record(b"a"))

    wait_until(lambda: runner.stats().delivered == 1, runner.stats)


def test_a_start_that_raises_is_tried_again(
    running: Callable[..., ForwarderRunner], caplog: pytest.LogCaptureFixture
) -> None:
    forwarder = Starting(bug, bug, bug)
    runner = running(forwarder)
    runner.offer(telemetry_record(b"a"))

    wait_until(lambda: runner.stats().delivered, runner.stats)

    (told,) = lines(caplog, "plugin fake failed in start: KeyError: 'team'")
    assert told["exc_info"][0] is KeyError
    assert len(lines(caplog, "plugin fake has started")) == 1
    assert runner.problem() is None
    assert runner.stats().failures == 3
    runner.stop(1.0)
    assert forwarder.closed == 1


def test_a_start_that_hangs_is_tried_again_with_more_time(running: Callable[..., ForwarderRunner]) -> None:
    waits_s = [3600.0, 3600.0]
    forwarder = Starting(*(lambda wait_s=wait_s: asyncio.sleep(wait_s) for wait_s in waits_s))
    runner = running(forwarder, ForwarderSettings(deliver_timeout_ms=20, retry_backoff_ms=1))
    runner.offer(telemetry_record(b"a"))

    wait_until(lambda: runner.stats().delivered, runner.stats)


def test_a_start_that_never_works_can_be_stopped(running: Callable[..., ForwarderRunner]) -> None:
    forwarder = Starting(*[bug] * 100_000)
    runner = running(forwarder)
    runner.offer(telemetry_record(b"a"))
    assert wait_until(runner.problem, runner.stats) == "start raised KeyError: 'team'"

    runner.stop(5.0)

    assert runner.thread is not None
    assert not runner.thread.is_alive()
    assert runner.stats().dropped == {"stopped": 1}
    assert forwarder.closed == 1


@pytest.mark.parametrize("call", ["start", "deliver"])
def test_a_call_that_blocks_its_thread_is_named(running: Callable[..., ForwarderRunner], call: str) -> None:
    release = threading.Event()

    def block(_batch: object = None) -> None:
        release.wait(20)

    forwarder = Starting(block) if call == "start" else FarSide(block)
    runner = running(forwarder, ForwarderSettings(deliver_timeout_ms=10, batch_max_age_ms=1))
    try:
        runner.offer(telemetry_record(b"a"))
        problem = wait_until(runner.problem, runner.stats)
    finally:
        release.set()

    assert problem == f"{call} has not returned within its time limit of 0.01 s"


def test_probes_name_the_plugin_and_dead_letters_have_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    far_side = FarSide(bug)
    limits = ("plugins.fake.failure.max.attempts=1", "metrics.listener=http://127.0.0.1:0")
    with hosting(tmp_path, *limits, sick=far_side, well=FarSide()) as host:
        _, port = outlets_of(host)
        push_all(host, range(1))
        wait_until(lambda: lines(caplog, "pushes are given up and become dead letters"), caplog.text)
        sick = [get(port, path) for path in ("/healthz", "/readyz")]

        far_side.behavior = lambda batch: None
        push_all(host, range(1, 2))
        wait_until(lambda: get(port, "/readyz")[0] == 200, "the host is ready again")
        well = [get(port, path) for path in ("/healthz", "/readyz")]

    problem = "forwarder fake.sick: deliver raised KeyError: 'team'\n"
    assert sick == [(200, f"ok\n{problem}"), (503, problem)]
    assert well == [(200, "ok\n")] * 2
    (lost, *_) = lines(caplog, "pushes are given up and become dead letters")
    assert (lost["plugin"], lost["reason"], lost["records"]) == ("fake.sick", "failure.max.attempts", 1)
    assert lost["offsets"] == {0: "0"}


def test_metrics_of_a_plugin_that_raise_hide_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Hidden(FarSide):
        @property
        def refused_points(self) -> dict[str, int]:
            raise KeyError("counts")

    with hosting(tmp_path, sick=Hidden(), well=FarSide()) as host:
        rows = [host.call(lambda: list(host.host.metric_rows())) for _ in range(2)]

    names = {row.attributes.get("plugin") for row in rows[1] if row.name == "odradek.forwarder.delivered"}
    assert names == {"fake.sick", "fake.well"}
    assert len(lines(caplog, "plugin fake.sick failed in its metrics")) == 1


class Stays:
    """A receiver whose close hangs or raises."""

    def __init__(self, close: Callable[[], object]) -> None:
        self.close = close

    def client_receiver(self) -> Stays:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Takes everything."""

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> Stays:
        return self


def test_a_close_that_hangs_or_raises_holds_up_no_stop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    release, closed = threading.Event(), threading.Event()
    plugins = HostPluginManager()
    plugins.add("hangs", Stays(lambda: release.wait(60)), "test", "1")
    plugins.add("raises", Stays(bug), "test", "1")
    plugins.add("well", Stays(closed.set), "test", "1")
    try:
        with running_host(tmp_path, "shutdown.timeout.ms=100", plugins=plugins):
            pass
        has_ended = not release.is_set()
    finally:
        release.set()

    assert has_ended
    assert closed.is_set()
    (left,) = lines(caplog, "plugin hangs did not close in 0.1 s, leaving it")
    (told,) = lines(caplog, "plugin raises cannot be closed: KeyError: 'team'")
    assert (left["plugin"], told["plugin"], told["exc_info"][0]) == ("hangs", "raises", KeyError)
