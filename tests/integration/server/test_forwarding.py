"""A forwarder on its own thread: well-behaved ones, and every kind of misbehavior."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.plugin import (
    Forwarder,
    Reject,
    Retry,
    TelemetryRecord,
)
from support.telemetry_records import telemetry_record
from support.waiting import wait_until

PATIENCE_S = 5.0
QUICK = ForwarderSettings(
    batch_max_records=4,
    batch_max_age_ms=5,
    retry_backoff_ms=1,
    retry_backoff_max_ms=4,
    deliver_timeout_ms=2_000,
)


def record_of(data: bytes = b"push") -> TelemetryRecord:
    return telemetry_record(data)


@dataclass
class FakeForwarder:
    """Runs the next line of its script; takes the batch when the script is over."""

    script: list[Callable[[Sequence[TelemetryRecord]], object]] = field(default_factory=list)
    taken: list[bytes] = field(default_factory=list)
    batches: int = 0
    calls: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)

    async def start(self) -> None:
        self.calls.append("start")

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        self.threads.add(threading.get_ident())
        if self.script:
            answer = self.script.pop(0)(batch)
            if asyncio.iscoroutine(answer):
                await answer
        self.batches += 1
        self.taken += [record.payload.data for record in batch]

    async def close(self) -> None:
        self.calls.append("close")


def raising(error: BaseException) -> Callable[[Sequence[TelemetryRecord]], object]:
    def script(batch: Sequence[TelemetryRecord]) -> object:
        raise error

    return script


async def hang(batch: Sequence[TelemetryRecord]) -> None:
    await asyncio.sleep(3600)


async def hang_and_ignore_cancellation(batch: Sequence[TelemetryRecord]) -> None:
    for _ in range(20):
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            continue


def quick(**changes: int) -> ForwarderSettings:
    values = {name: getattr(QUICK, name) for name in ForwarderSettings.__dataclass_fields__}
    return ForwarderSettings(**(values | changes))


@dataclass
class Runners:
    started: list[ForwarderRunner] = field(default_factory=list)

    def __call__(self, forwarder: Forwarder, settings: ForwarderSettings = QUICK) -> ForwarderRunner:
        runner = ForwarderRunner("fake", forwarder, settings)
        self.started.append(runner)
        runner.start()
        return runner


@pytest.fixture
def running() -> Iterator[Runners]:
    runners = Runners()
    yield runners
    for runner in runners.started:
        runner.stop(1.0)
        assert runner.stats().balanced


def eventually(runner: ForwarderRunner, condition: Callable[[ForwarderStats], bool]) -> ForwarderStats:
    """The accounting once the condition holds; every intermediate state must be balanced."""

    def found() -> ForwarderStats | None:
        stats = runner.stats()
        assert stats.balanced, stats
        return stats if condition(stats) else None

    stats = wait_until(found, runner.stats)
    assert stats is not None
    return stats


def settled(stats: ForwarderStats) -> bool:
    return stats.queued == 0 and stats.in_flight == 0


def test_pushes_arrive_in_order_and_in_batches(running: Runners) -> None:
    forwarder = FakeForwarder()
    runner = running(forwarder)

    for number in range(10):
        assert runner.offer(record_of(b"%d" % number))

    stats = eventually(runner, settled)
    assert forwarder.taken == [b"%d" % number for number in range(10)]
    assert forwarder.batches < 10
    assert (stats.offered, stats.delivered, stats.queued_bytes) == (10, 10, 0)


def test_a_lone_push_is_sent_when_it_is_old_enough(running: Runners) -> None:
    forwarder = FakeForwarder()
    runner = running(forwarder)

    runner.offer(record_of(b"alone"))

    eventually(runner, settled)
    assert forwarder.taken == [b"alone"]


def test_the_plugin_runs_on_its_own_thread(running: Runners) -> None:
    forwarder = FakeForwarder()
    runner = running(forwarder)
    runner.offer(record_of())
    eventually(runner, settled)

    runner.stop(1.0)

    assert forwarder.calls == ["start", "close"]
    assert threading.get_ident() not in forwarder.threads


def test_pushes_offered_before_the_start_are_delivered(running: Runners) -> None:
    forwarder = FakeForwarder()
    runner = ForwarderRunner("fake", forwarder, QUICK)
    running.started.append(runner)
    runner.offer(record_of(b"early"))

    runner.start()

    eventually(runner, settled)
    assert forwarder.taken == [b"early"]


def test_a_retried_batch_is_delivered_once(running: Runners) -> None:
    forwarder = FakeForwarder(script=[raising(Retry("busy")), raising(Retry("still busy", 0.001))])
    runner = running(forwarder)

    runner.offer(record_of(b"a"))

    stats = eventually(runner, settled)
    assert forwarder.taken == [b"a"]
    assert (stats.delivered, stats.retries, stats.last_error) == (1, 2, "still busy")


def test_the_wait_requested_by_the_destination_is_respected(running: Runners) -> None:
    runner = running(FakeForwarder(script=[raising(Retry("busy", 0.15))]))
    before_s = time.monotonic()

    runner.offer(record_of())

    eventually(runner, settled)
    assert time.monotonic() - before_s >= 0.15


def test_after_the_last_retry_the_next_batch_is_sent(running: Runners) -> None:
    forwarder = FakeForwarder(script=[raising(Retry("busy"))] * 3)
    runner = running(forwarder, quick(retry_max_attempts=2, batch_max_records=1))

    runner.offer(record_of(b"lost"))
    runner.offer(record_of(b"next"))

    stats = eventually(runner, settled)
    assert forwarder.taken == [b"next"]
    assert stats.dropped == {"retry.max.attempts": 1}


def test_a_rejected_batch_is_counted_with_its_reason(running: Runners) -> None:
    forwarder = FakeForwarder(script=[raising(Reject("HTTP 400"))])
    runner = running(forwarder, quick(batch_max_records=1))

    runner.offer(record_of(b"bad"))
    runner.offer(record_of(b"good"))

    stats = eventually(runner, settled)
    assert forwarder.taken == [b"good"]
    assert stats.rejected == {"HTTP 400": 1}


def test_the_rest_of_a_batch_is_delivered_without_the_rejected_record(running: Runners) -> None:
    def refuse_poison(batch: Sequence[TelemetryRecord]) -> object:
        raise Reject("poison", [record for record in batch if record.payload.data == b"poison"])

    forwarder = FakeForwarder(script=[refuse_poison])
    runner = running(forwarder, quick(batch_max_age_ms=60_000))  # due with its fourth record, not before

    for data in (b"a", b"poison", b"b", b"c"):
        runner.offer(record_of(data))

    stats = eventually(runner, settled)
    assert forwarder.taken == [b"a", b"b", b"c"]
    assert stats.rejected == {"poison": 1}


@pytest.mark.parametrize(
    "error", [ValueError("bug"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_a_batch_that_keeps_failing_is_dropped(running: Runners, error: BaseException) -> None:
    forwarder = FakeForwarder(script=[raising(error)] * 3)
    runner = running(forwarder, quick(failure_max_attempts=3, batch_max_records=1))

    runner.offer(record_of(b"lost"))
    runner.offer(record_of(b"next"))

    stats = eventually(runner, settled)
    assert forwarder.taken == [b"next"]
    assert (stats.failures, stats.dropped) == (3, {"failure.max.attempts": 1})


def test_an_error_with_wrong_fields_affects_only_its_batch(running: Runners) -> None:
    retry = Retry("busy", "soon")  # type: ignore[arg-type]
    reject = Reject("bad", 7)  # type: ignore[arg-type]
    runner = running(FakeForwarder(script=[raising(retry), raising(reject)]), quick(batch_max_records=1))

    runner.offer(record_of(b"bad"))
    runner.offer(record_of(b"good"))

    stats = eventually(runner, settled)
    assert (stats.delivered, stats.rejected) == (1, {"bad": 1})


def test_a_forwarder_that_empties_its_batch_does_not_affect_the_accounting(running: Runners) -> None:
    def empty(batch: Sequence[TelemetryRecord]) -> None:
        batch.clear()  # type: ignore[attr-defined]

    runner = running(FakeForwarder(script=[empty]))

    runner.offer(record_of())

    assert eventually(runner, settled).delivered == 1


def test_a_deliver_that_is_not_a_coroutine_is_a_failure(running: Runners) -> None:
    forwarder = FakeForwarder()
    forwarder.deliver = lambda batch: None  # type: ignore[method-assign,assignment,return-value]
    runner = running(forwarder, quick(failure_max_attempts=2))

    runner.offer(record_of())

    assert eventually(runner, settled).dropped == {"failure.max.attempts": 1}


@pytest.mark.parametrize("hanging", [hang, hang_and_ignore_cancellation])
def test_a_hanging_deliver_is_cancelled(
    running: Runners, hanging: Callable[[Sequence[TelemetryRecord]], object]
) -> None:
    forwarder = FakeForwarder(script=[hanging])
    runner = running(forwarder, quick(deliver_timeout_ms=20))

    runner.offer(record_of(b"a"))

    stats = eventually(runner, settled)
    assert forwarder.taken[:1] == [b"a"]
    assert (stats.delivered, stats.failures) == (1, 1)
    assert str(stats.last_error).startswith("TimeoutError")


def test_the_newest_pushes_are_dropped_while_the_destination_is_down(running: Runners) -> None:
    release = threading.Event()

    async def wait(batch: Sequence[TelemetryRecord]) -> None:
        while not release.is_set():
            await asyncio.sleep(0.002)

    forwarder = FakeForwarder(script=[wait])
    runner = running(forwarder, quick(queue_max_records=6))

    accepted = [runner.offer(record_of(b"%d" % number)) for number in range(20)]

    held = runner.stats()
    assert accepted == [True] * 6 + [False] * 14
    assert (held.queued + held.in_flight, held.dropped) == (6, {"queue.max.records": 14})
    release.set()
    eventually(runner, settled)
    assert forwarder.taken == [b"%d" % number for number in range(6)]
    assert runner.offer(record_of())


def test_stop_delivers_queued_pushes_before_it_closes() -> None:
    forwarder = FakeForwarder()
    runner = ForwarderRunner("fake", forwarder, quick(batch_max_age_ms=3_600_000, batch_max_records=1_000))
    runner.start()
    for number in range(10):
        runner.offer(record_of(b"%d" % number))

    runner.stop(PATIENCE_S)

    assert forwarder.taken == [b"%d" % number for number in range(10)]
    assert forwarder.calls == ["start", "close"]
    assert runner.stats().delivered == 10


def test_after_stop_a_push_is_counted_as_dropped() -> None:
    runner = ForwarderRunner("fake", FakeForwarder(), QUICK)
    runner.start()
    runner.stop(PATIENCE_S)

    accepted = runner.offer(record_of())

    assert not accepted
    assert runner.stats().dropped == {"stopped": 1}
    assert runner.stats().balanced


def test_stop_retries_at_once_instead_of_waiting_for_the_backoff() -> None:
    forwarder = FakeForwarder(script=[raising(Retry("busy", 60.0))])
    runner = ForwarderRunner("fake", forwarder, QUICK)
    runner.start()
    runner.offer(record_of(b"a"))
    eventually(runner, lambda stats: stats.retries == 1)

    runner.stop(PATIENCE_S)

    assert forwarder.taken == [b"a"]


def test_stop_with_the_destination_down_ends_in_time_and_closes() -> None:
    forwarder = FakeForwarder(script=[raising(Retry("down"))] * 100_000)
    runner = ForwarderRunner("fake", forwarder, quick(retry_max_attempts=0))
    runner.start()
    for _ in range(10):
        runner.offer(record_of())
    before_s = time.monotonic()

    runner.stop(PATIENCE_S)

    assert time.monotonic() - before_s < 2 * PATIENCE_S
    assert runner.stats().dropped == {"stopped": 10}
    assert runner.stats().balanced
    assert forwarder.calls == ["start", "close"]


def test_a_forwarder_that_blocks_its_thread_cannot_delay_stop() -> None:
    release = threading.Event()

    def block(batch: Sequence[TelemetryRecord]) -> None:
        release.wait(PATIENCE_S)

    runner = ForwarderRunner("fake", FakeForwarder(script=[block]), QUICK)
    runner.start()
    for _ in range(10):
        runner.offer(record_of())
    eventually(runner, lambda stats: stats.in_flight > 0)
    before_s = time.monotonic()

    runner.stop(0.1)

    assert time.monotonic() - before_s < 3
    assert runner.stats().dropped == {"stopped": 10}
    assert runner.stats().balanced
    release.set()
    assert runner.thread is not None
    runner.thread.join(PATIENCE_S)
    assert runner.stats().balanced
    assert runner.stats().delivered == 0


def test_a_hanging_close_cannot_delay_stop() -> None:
    forwarder = FakeForwarder()
    forwarder.close = lambda: hang([])  # type: ignore[method-assign]
    runner = ForwarderRunner("fake", forwarder, QUICK)
    runner.start()
    before_s = time.monotonic()

    runner.stop(1.0)

    assert time.monotonic() - before_s < 3
    assert runner.thread is not None
    assert not runner.thread.is_alive()


def test_stop_without_start_settles_the_accounting() -> None:
    runner = ForwarderRunner("fake", FakeForwarder(), QUICK)
    runner.offer(record_of())

    runner.stop(1.0)

    assert runner.stats().dropped == {"stopped": 1}
    assert runner.stats().balanced


def test_stop_twice_closes_once() -> None:
    forwarder = FakeForwarder()
    runner = ForwarderRunner("fake", forwarder, QUICK)
    runner.start()
    runner.stop(PATIENCE_S)

    runner.stop(PATIENCE_S)

    assert forwarder.calls == ["start", "close"]


def test_two_forwarders_stop_in_parallel() -> None:
    runners = [
        ForwarderRunner("fake", FakeForwarder(script=[raising(Retry("down", 60.0))] * 9), QUICK)
        for _ in range(2)
    ]
    for runner in runners:
        runner.start()
        runner.offer(record_of())
    before_s = time.monotonic()

    for runner in runners:
        runner.stop_soon(0.4)
    for runner in runners:
        runner.stop(0.4)

    assert time.monotonic() - before_s < 3
    assert all(runner.stats().balanced for runner in runners)


def test_the_accounting_is_balanced_at_every_moment_of_a_busy_hour(running: Runners) -> None:
    faults = [raising(Retry("busy")), raising(Reject("bad")), raising(ValueError("bug")), lambda batch: None]
    forwarder = FakeForwarder(script=faults * 25)
    runner = running(forwarder, quick(queue_max_records=50, failure_max_attempts=1))

    for number in range(5_000):
        runner.offer(record_of(b"%d" % number))
        if number % 20 == 0:
            assert runner.stats().balanced
            time.sleep(0.0002)

    stats = eventually(runner, settled)
    assert stats.offered == 5_000
    assert stats.delivered == len(forwarder.taken) > 0
    assert set(stats.dropped) <= {"queue.max.records", "failure.max.attempts"}


def test_an_outage_is_one_line_at_its_beginning_and_one_at_its_end(
    running: Runners, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    forwarder = FakeForwarder([raising(Retry("connection refused")) for _ in range(5)])
    runner = running(forwarder, quick(retry_backoff_ms=1, retry_backoff_max_ms=1))

    runner.offer(record_of(b"1"))
    eventually(runner, settled)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "destination of fake is down, trying again: Retry: connection refused"),
        ("WARNING", "destination of fake delivers again"),
    ]
    assert vars(caplog.records[1])["attempts"] == 5
