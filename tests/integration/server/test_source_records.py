"""Large records of sources: a worker process opens them, because protobuf's parser cannot be interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any, Final

import pytest

from odradek.hosting.source_runner import HostIntake, SourceRunner
from odradek.otlp import Sender, delimited, otlp_records
from odradek.plugin import Intake, Receipt, TelemetryRecord
from odradek.process.payload_workers import WorkerFailed
from odradek.telemetry.record_source import RecordSource
from odradek.waiting.clock import SystemClock
from odradek.waiting.deferred import offload_inline
from support.broker import make_broker

MANY_POINTS: Final = delimited(0x12, delimited(0x12, delimited(0x2A, b"\x0a\x00" * 100_000)))
FEW_POINTS: Final = delimited(0x12, delimited(0x12, delimited(0x2A, b"\x0a\x00" * 100)))


def records_of(*contents: bytes) -> list[TelemetryRecord]:
    """A record of each client."""
    found = []
    for number, content in enumerate(contents):
        resource = delimited(0x0A, delimited(0x0A, delimited(0x0A, b"client-%d" % number)))
        found += otlp_records(delimited(0x0A, resource + content), Sender(address="h", port=1), 1, 60_000)
    return found


class Host:
    """The entrance of a host, whose workers are scripted."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.offloaded: list[int] = []
        self.kept: list[TelemetryRecord] = []
        telemetry = make_broker().telemetry
        telemetry.offload = self.offload
        self.entrance = RecordSource("test", telemetry, self.keep)

    def keep(self, record: TelemetryRecord) -> bool:
        self.kept.append(record)
        return True

    def offload(self, work: Any, done: Callable[[Any], None]) -> None:
        self.offloaded.append(work.size_bytes)
        if self.fails:
            done(WorkerFailed("gone"))
        else:
            offload_inline(work, done)

    def store(self, records: list[TelemetryRecord]) -> Receipt:
        async def stored() -> Receipt:
            return await HostIntake(self.entrance, asyncio.get_running_loop(), Event()).store(records)

        return asyncio.run(stored())


def test_a_large_record_is_opened_by_a_worker() -> None:
    host = Host()
    large, small = records_of(MANY_POINTS, FEW_POINTS)

    receipt = host.store([large, small])

    assert (receipt.stored, receipt.left, receipt.refused) == (2, [], [])
    assert host.offloaded == [len(large.payload.data)]
    assert [each.source for each in host.kept] == ["test", "test"]
    assert all(each.labeled for each in host.kept)


def test_a_large_record_that_is_not_otlp_is_refused() -> None:
    (large,) = records_of(MANY_POINTS)
    large.payload.data = large.payload.data[:-1]

    receipt = Host().store([large])

    assert [each.record for each in receipt.refused] == [large]


def test_a_record_above_the_limit_of_pushes_is_refused_without_a_worker() -> None:
    host = Host()
    (large,) = records_of(delimited(0x12, bytes(host.entrance.manager.limits.max_bytes)))

    receipt = host.store([large])

    assert ([each.record for each in receipt.refused], host.offloaded) == ([large], [])


def test_what_is_no_record_is_told() -> None:
    wrong: Any = b"x"

    with pytest.raises(TypeError, match="store got bytes, expected a sequence of TelemetryRecord"):
        Host().store(wrong)
    with pytest.raises(TypeError, match="store got bytes among its records, expected TelemetryRecord"):
        Host().store([*records_of(FEW_POINTS), wrong])


class Ending:
    """A source whose call ends by itself."""

    async def run(self, intake: Intake) -> None: ...

    def lag(self) -> int | None:
        return None


class Storing(Ending):
    async def run(self, intake: Intake) -> None:
        wrong: Any = [b"x"]
        await intake.store(wrong)


@pytest.mark.parametrize(
    ("source", "told", "line"),
    [
        (Ending(), "run has returned; expected to store records until it is cancelled", 0),
        (Storing(), "store got bytes among its records, expected TelemetryRecord", 2),
    ],
)
def test_a_source_that_ends_is_told_with_its_place(
    source: Ending, told: str, line: int, caplog: pytest.LogCaptureFixture
) -> None:
    """``line`` is that of the fault in its ``run``."""

    async def scenario() -> None:
        runner = SourceRunner(source, Host().entrance, SystemClock())
        runner.start()
        while not runner.stats.failed:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(runner.stop, 5.0)

    asyncio.run(scenario())

    (message,) = caplog.messages
    assert told in message
    assert f"({__file__}:{type(source).run.__code__.co_firstlineno + line}" in message


def test_records_are_left_to_their_sender_if_the_workers_are_busy() -> None:
    host = Host(fails=True)
    small, large, later = records_of(FEW_POINTS, MANY_POINTS, FEW_POINTS)

    receipt = host.store([small, large, later])

    assert receipt.stored + len(receipt.left) == 3
    assert receipt.left[-2:] == [large, later]
