"""Totals at every destination: whatever is away, dies or comes again, they are the sums of the log."""

from __future__ import annotations

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.delivery.batch_delivery import BatchDelivery
from odradek.delivery.batch_queue import BatchQueue
from odradek.delivery.delivery_ledger import DeliveryLedger
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.delivery.spooled_record import SpooledRecord
from odradek.endpoints.http_answer import HttpAnswer
from odradek.endpoints.http_client import HttpTarget
from odradek.plugin import Origin, PluginConfig, Reject, Retry, TelemetryRecord
from odradek.temporality import CumulativeForwarder, Engine, StoreFailed, TotalsFigures, TotalsSettings
from odradek.wire.record import Record
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_settings import OtlpProtocol, OtlpSettings
from odradek_prometheus.exposition import Exposition, ExpositionSettings
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from odradek_prometheus.remote_write.remote_write_settings import read_remote_write
from odradek_prometheus.text_format import Format, Page
from support.delta_clients import TOPIC, Scene, Store, d, ms
from support.examples import examples
from support.remote_write_receiver import StoringReceiver

PARTITIONS = 2
INTERVALS_S = (1, 2, 5, 5, 17)
"""Of the clients, in seconds."""
SECONDS = 20
SAMPLE = re.compile(r'c_total\{client_id="([^"]*)".*\} (\S+)')
URL = "http://receiver:1/write"
TOTALS = TotalsSettings(file=Path("unused"))
Sums = dict[str, list[float]]
"""The values of the counter that a destination was shown, by client."""


class Died(BaseException):
    """The process is gone. No handler of exceptions sees it."""


@dataclass
class Faults:
    """What goes wrong, by chance. At the end nothing does."""

    chance: random.Random
    are_over: bool = False
    away: int = 0
    """The attempts for which the destination is still away."""
    is_mistaken: bool = False
    """The last attempt failed by a mistake; two would give up a push."""
    deaths: int = 0

    def happen(self) -> None:
        """Before the destination takes something.

        Raises:
            Retry: It is away.
            ValueError: The forwarder has a mistake.
            Died: The process dies.
        """
        if self.are_over:
            return
        if self.away:
            self.away -= 1
            raise Retry("away")
        what = self.chance.random()
        if what < 0.06:
            self.away = self.chance.randrange(1, 12)
            raise Retry("away")
        if what < 0.1 and not self.is_mistaken:
            self.is_mistaken = True
            raise ValueError("a mistake")
        self.is_mistaken = False
        self.die(0.03)

    def die(self, chance: float) -> None:
        if not self.are_over and self.chance.random() < chance:
            self.deaths += 1
            raise Died


class FailingStore:
    """A store whose process dies before and after a commit, or has no room for it.

    It has one part, or one for each partition.
    """

    name = "memory"

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.parts = faults.chance.choice((1, PARTITIONS))
        self.stores = [Store() for _ in range(self.parts)]

    def open(self) -> None:
        """Nothing to open."""

    def part_of(self, position: Origin | None) -> int:
        return position.partition % self.parts if position is not None else 0

    def load(self, engine: Engine, part: int) -> None:
        self.stores[part].load(engine)

    def commit(self, engine: Engine, part: int) -> None:
        self.faults.die(0.01)
        if not self.faults.are_over and self.faults.chance.random() < 0.02:
            raise StoreFailed("no room")
        self.stores[part].commit(engine.take_changes())
        self.faults.die(0.01)

    def close(self) -> None:
        """Nothing to close."""


class Log:
    """What clients have pushed, by partition; the pushes of a record are neighbours."""

    def __init__(self, chance: random.Random) -> None:
        self.partitions: list[list[SpooledRecord]] = [[] for _ in range(PARTITIONS)]
        self.sums: dict[str, float] = defaultdict(float)
        self.chance = chance
        goodbyes = [chance.randrange(1, 2 * SECONDS) for _ in INTERVALS_S]
        for second in range(1, SECONDS + 1):
            for number, interval_s in enumerate(INTERVALS_S):
                if second <= goodbyes[number] and second % interval_s == 0:
                    self.push(number, second)
                if second == goodbyes[number]:
                    self.push(number, second + 0.3, terminating=True)
                if chance.random() < 0.01:
                    self.push(number, second + 0.6)  # also after the goodbye

    def push(self, number: int, second: float, *, terminating: bool = False) -> None:
        chance, partition = self.chance, number % PARTITIONS
        name, value = f"client-{number}", float(chance.randrange(10))
        clock = second + chance.choice((0, 0, 0, -30, 7_000))
        instance = bytes([number]) * 16
        record = Scene().record(
            d(value, clock - 1, clock),
            at=second,
            instance=instance,
            labels={"client_id": name},
            terminating=terminating,
        )
        record.context = replace(record.context, client_id=name)
        self.sums[name] += value
        records = self.partitions[partition]
        offset = records[-1].original.offset if records else -1
        others = [each for each in records if each.original.offset == offset]
        is_there = any(each.payload.client_instance_id == instance for each in others)
        beside = bool(others) and not is_there and chance.random() < 0.2
        offset += not beside
        records.append(
            SpooledRecord(
                context=record.context,
                push_interval_ms=record.push_interval_ms,
                payload=record.payload,
                position=Origin(TOPIC, partition, offset),
                partition=partition,
                original=Record(None, None, offset=offset),
                is_first=not beside,
            )
        )

    def after(self, positions: Sequence[int]) -> list[SpooledRecord]:
        """The pushes from the positions on, as a feed reads them: pieces of one partition after the other."""
        left = [
            [each for each in records if each.original.offset >= position]
            for records, position in zip(self.partitions, positions, strict=True)
        ]
        found: list[SpooledRecord] = []
        while any(left):
            records = self.chance.choice(left)
            last = self.chance.choice(records[:60]).original.offset if records else 0
            found += [each for each in records if each.original.offset <= last]
            records[:] = [each for each in records if each.original.offset > last]
        return found


class Destination(Protocol):
    """A forwarder with totals, and what its far side has got."""

    shown: Sums

    def forwarder(self) -> CumulativeForwarder | RemoteWriteForwarder:
        """The forwarder of a new process, whose store has what was committed."""

    def look(self) -> None:
        """Take note of what is shown now."""


class ScrapedPage:
    """The page that Prometheus scrapes. It is the inner forwarder of its totals."""

    def __init__(self, store: FailingStore, faults: Faults) -> None:
        self.store = store
        self.faults = faults
        self.shown: Sums = defaultdict(list)

    def forwarder(self) -> CumulativeForwarder:
        self.exposition = Exposition(ExpositionSettings())
        found = self.exposition.wrap(self, TOTALS)
        found.store_in(self.store)
        return found

    async def start(self) -> None:
        """Show the stored clients."""
        self.exposition.load(ms(SECONDS))

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Show the series of a batch."""
        self.faults.happen()
        self.exposition.update(batch)

    async def close(self) -> None:
        """Nothing to close."""

    def look(self) -> None:
        """Scrape."""
        page = b"".join(Page(self.exposition.clients(), ms(SECONDS), Format()).pieces()).decode()
        for line in page.splitlines():
            if found := SAMPLE.match(line):
                self.shown[found[1]].append(float(found[2]))


class RemoteWrite:
    """A receiver of remote write, at the far end of a client without a network."""

    def __init__(self, store: FailingStore, faults: Faults) -> None:
        self.store = store
        self.faults = faults
        self.receiver = StoringReceiver()
        self.target = HttpTarget(url=URL, secure=False)

    @property
    def shown(self) -> Sums:
        """The samples that the receiver has stored."""
        return {
            dict(labels)["client_id"]: [row.value for row in rows if row.value is not None]
            for labels, rows in self.receiver.samples.items()
            if ("__name__", "c_total") in labels
        }

    def forwarder(self) -> RemoteWriteForwarder:
        table = {"url": URL, "samples.per.request": 7, "totals.file": str(TOTALS.file)}
        values = {f"remote_write.{key}": value for key, value in table.items()}
        found = read_remote_write(PluginConfig("plugins.prometheus", values))
        assert found is not None
        forwarder = RemoteWriteForwarder(found, Exposition(ExpositionSettings()), "test/1")
        forwarder.client = forwarder.receiver.client = self  # type: ignore[assignment]
        forwarder.store_in(self.store)
        return forwarder

    def look(self) -> None:
        """The receiver has all that was sent."""

    async def open(self) -> None:
        """Nothing to open."""

    async def refresh(self) -> None:
        """No certificates."""

    async def close(self) -> None:
        """Nothing to close."""

    async def post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        self.faults.happen()
        exchange = Exchange(body, headers)
        self.receiver(exchange)  # type: ignore[arg-type]
        if not self.faults.are_over and self.faults.chance.random() < 0.02:
            raise Retry("the answer is lost")
        return exchange.answered


@dataclass
class Exchange:
    """A request and its answer, as `support.otlp_collector` has them."""

    content: bytes
    headers: Mapping[str, str]
    answered: HttpAnswer = field(init=False)

    def body(self) -> bytes:
        return self.content

    def answer(self, status: int, text: str = "", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answered = HttpAnswer(status, named, "text/plain", text.encode())


class CumulativeOtlp:
    """An OTLP endpoint that wants cumulative values. Its forwarder is its own transport."""

    def __init__(self, store: FailingStore, faults: Faults) -> None:
        self.store = store
        self.faults = faults
        self.shown: Sums = defaultdict(list)

    def forwarder(self) -> CumulativeForwarder:
        inner = OtlpForwarder(
            OtlpSettings(protocol=OtlpProtocol.HTTP, target="http://endpoint:1", secure=False), "test/1", self
        )
        found = CumulativeForwarder(inner, TOTALS)
        found.store_in(self.store)
        return found

    def look(self) -> None:
        """The endpoint has all that was sent."""

    async def open(self) -> None:
        """Nothing to open."""

    async def refresh(self) -> None:
        """No certificates."""

    async def close(self) -> None:
        """Nothing to close."""

    async def send(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        self.faults.happen()
        for entry in MetricsData.FromString(body).resource_metrics:
            labels = {each.key: each.value.string_value for each in entry.resource.attributes}
            for scope in entry.scope_metrics:
                for metric in scope.metrics:
                    for found in metric.sum.data_points:
                        self.shown[labels["client_id"]].append(found.as_double)
        return b""


@dataclass
class Life:
    """A process, from its start to its death or the end of the log."""

    log: Log
    destination: Destination
    committed: list[int]
    """The offsets of the group."""
    figures: TotalsFigures = field(init=False)

    async def live(self) -> None:
        """Deliver the rest of the log.

        Raises:
            Died: Before its end.
        """
        forwarder = self.destination.forwarder()
        self.figures = forwarder.figures
        await forwarder.start()
        chance = self.log.chance
        ledger = DeliveryLedger()
        options = ForwarderSettings(batch_max_records=chance.choice((1, 7, 40)), failure_max_attempts=2)
        queue = BatchQueue(options, ledger)
        for record in self.log.after(self.committed):
            queue.put(record, 0)
        try:
            while batch := queue.take(0, flush=True):
                await self.deliver(forwarder, BatchDelivery(batch, options, ledger, chance.random), batch)
        finally:
            await forwarder.close()

    async def deliver(
        self,
        forwarder: CumulativeForwarder | RemoteWriteForwarder,
        delivery: BatchDelivery,
        batch: Sequence[TelemetryRecord],
    ) -> None:
        """Deliver a batch, then commit its offsets."""
        while delivery.records:
            try:
                await forwarder.deliver(delivery.piece())
            except Retry as error:
                delivery.retry(error)
            except Reject as error:
                delivery.reject(error)
            except ValueError as error:
                delivery.failed(str(error))
                delivery.halved()
            else:
                delivery.delivered()
        self.destination.look()
        for record in batch:
            assert isinstance(record, SpooledRecord)
            self.committed[record.partition] = record.original.offset + 1


@pytest.mark.parametrize("kind", [ScrapedPage, RemoteWrite, CumulativeOtlp])
@given(seed=st.integers(0, 1_000_000))
@settings(max_examples=examples(60), deadline=None)
def test_totals_are_the_sums_of_the_log(kind: type, seed: int) -> None:
    faults = Faults(random.Random(seed))
    log = Log(random.Random(seed))
    destination = kind(FailingStore(faults), faults)
    committed = [0] * PARTITIONS
    is_over = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: ms(SECONDS) / 1000)
        while not is_over:
            faults.are_over = faults.deaths >= 5
            life = Life(log, destination, committed)
            try:
                asyncio.run(life.live())
                is_over = True
            except Died:
                pass
            assert life.figures.counts.lost_records == 0

    assert {name: values[-1] for name, values in destination.shown.items()} == log.sums
    assert all(values == sorted(values) for values in destination.shown.values())
