"""A source of OTLP on a thread of its own, with a scripted host, and metrics to send it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.endpoints import Address
from odradek.hosting.source_runner import SourceRunner
from odradek.plugin import Receipt, Refused, TelemetryRecord
from odradek.process.limits import new_loop
from odradek.waiting.deferred import Deferred
from odradek_otlp.otlp_source import OtlpSource
from odradek_otlp.source_settings import SourceSettings
from support.hosts import ThreadedHost
from support.waiting import wait_until

ANYWHERE = Address("127.0.0.1", 0)
STOP_S = 10.0


def entry(metric: str = "load", points: int = 1, **attributes: str) -> ResourceMetrics:
    pairs = [
        KeyValue(key=key.replace("__", "."), value=AnyValue(string_value=value))
        for key, value in attributes.items()
    ]
    gauge = Gauge(data_points=[NumberDataPoint(as_int=7) for _ in range(points)])
    scope = ScopeMetrics(metrics=[Metric(name=metric, gauge=gauge)])
    return ResourceMetrics(resource=Resource(attributes=pairs), scope_metrics=[scope])


def body_of(*entries: ResourceMetrics) -> bytes:
    return MetricsData(resource_metrics=entries).SerializeToString()


def source_of(host: ThreadedHost) -> SourceRunner:
    """The only source of a host."""
    (runner,) = host.host.pushes.sources.runners
    return runner


def fail_now_and_then(host: ThreadedHost) -> None:
    """One record of 75 finds no room in the log of a host with one source."""
    runner = source_of(host)
    keep, numbers = runner.entrance.keep, itertools.count(1)

    def now_and_then(record: TelemetryRecord) -> bool | Deferred[bool]:
        return keep(record) if next(numbers) % 75 else False

    runner.entrance.keep = now_and_then


@dataclass(eq=False)
class ScriptedIntake:
    """An intake with a script."""

    refuse: Callable[[TelemetryRecord], str | None] = lambda record: None
    room: bool = True
    stored: list[TelemetryRecord] = field(default_factory=list)
    unread: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    source: OtlpSource | None = None
    """The source that runs on it."""

    @property
    def receiving(self) -> int:
        """The requests whose bodies the source is reading."""
        reception = self.source.reception if self.source is not None else None
        return reception.receiving if reception is not None else 0

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        if not self.room:
            return Receipt(left=list(records))
        refused = [Refused(record, why) for record in records if (why := self.refuse(record))]
        named = {id(each.record) for each in refused}
        self.stored += [record for record in records if id(record) not in named]
        return Receipt(stored=len(records) - len(refused), refused=refused)

    def listening(self) -> None:
        pass

    def unreadable(self, records: int) -> None:
        self.unread += records

    def answered(self, outcome: str) -> None:
        self.outcomes[outcome] += 1


@contextmanager
def running_source(host: ScriptedIntake, **fields: Any) -> Iterator[int]:
    """The port of a source with one listener, which runs on a thread of its own."""
    source = host.source = OtlpSource(SourceSettings(**fields))
    loop = new_loop()
    task = loop.create_task(source.run(host))

    def live() -> None:
        try:
            loop.run_until_complete(asyncio.wait({task}))
        finally:
            loop.close()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        wait_until(lambda: source.ports, "the source listens")
        yield source.ports[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(STOP_S)
    assert source.reception is not None
    assert (source.reception.held_bytes, source.reception.receiving) == (0, 0)
