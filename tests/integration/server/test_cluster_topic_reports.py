"""The reports of a plugin that writes the telemetry topic of a cluster, and the end of the host."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from odradek.broker.spool_settings import Durability, SpoolSettings
from odradek.hosting.cluster_topic import ClusterTopic
from odradek.plugin import ConfigError, NotWritten, TelemetryRecord
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from support.telemetry_records import telemetry_record


class Writer:
    """Keeps records until it is told to report them."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.started: tuple[str, int] | None = None
        self.numbers: list[int] = []
        self.report: Callable[[int, NotWritten | None], None]
        self.reports_at_flush = False

    def start(self, topic: str, timeout_ms: int, report: Callable[[int, NotWritten | None], None]) -> None:
        if self.fails is not None:
            raise self.fails
        self.started, self.report = (topic, timeout_ms), report

    def write(self, number: int, record: TelemetryRecord) -> None:
        self.numbers.append(number)

    def flush(self, timeout_s: float) -> None:
        if self.reports_at_flush:
            for number in self.numbers:
                self.report(number, None)


def made(writer: Writer) -> ClusterTopic:
    clock = MockClock()
    return ClusterTopic(SpoolSettings(durability=Durability.KAFKA), writer, clock, clock.timer)


def take(topic: ClusterTopic) -> Deferred[bool]:
    kept = topic.take_record(telemetry_record(b"data"))
    assert isinstance(kept, Deferred)
    return kept


def test_the_plugin_gives_up_before_the_host() -> None:
    async def run() -> tuple[str, int] | None:
        writer = Writer()
        made(writer).start()
        return writer.started

    assert asyncio.run(run()) == ("__client_telemetry", 8_000)


def test_a_writer_that_does_not_start_stops_the_host() -> None:
    async def run() -> None:
        made(Writer(OSError("no threads"))).start()

    with pytest.raises(ConfigError, match=r"telemetry.durability: .* does not start: .*no threads"):
        asyncio.run(run())


def test_reports_of_another_thread_are_taken_on_the_loop_together() -> None:
    async def run() -> None:
        writer = Writer()
        topic = made(writer)
        topic.start()
        kept = [take(topic) for _ in range(50)]
        reporting = threading.Thread(
            target=lambda: [writer.report(number, None) for number in writer.numbers]
        )
        reporting.start()
        reporting.join()
        assert not any(each.done for each in kept)  # the loop has not run
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [each.result() for each in kept] == [True] * 50
        topic.report(99, None)
        await asyncio.sleep(0)
        assert not topic.reports

    asyncio.run(run())


@pytest.mark.parametrize("answers", [True, False])
def test_a_stop_waits_for_the_cluster_and_answers_every_push(
    answers: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> list[bool]:
        writer = Writer()
        topic = made(writer)
        topic.start()
        kept = [take(topic) for _ in range(3)]
        writer.reports_at_flush = answers
        await topic.stop(1.0)
        assert topic.take_record(telemetry_record(b"late")) is False
        return [each.result() for each in kept]

    assert asyncio.run(run()) == [answers] * 3
    assert caplog.messages == ([] if answers else ["the cluster has not acknowledged all pushes"])
