"""Wraps the forwarder of any destination, which then gets cumulative values.

A batch is added to the totals, the totals are committed with the positions, and only then the batch is
delivered. A batch that comes again, after a failed delivery or a crash, is not added again, and is delivered
with the totals at that time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.otlp import NotOtlp
from odradek.plugin import (
    CountsRefusedPoints,
    Forwarder,
    Listens,
    Reject,
    RenamesLabels,
    Retry,
    TelemetryRecord,
)
from odradek.temporality.counts import Counts, Limits
from odradek.temporality.engine import Engine
from odradek.temporality.positions import Partition
from odradek.temporality.rebuild import is_rebuilt
from odradek.temporality.shape import BadState
from odradek.temporality.state_file import StateFile
from odradek.temporality.totals_figures import TotalsFigures
from odradek.temporality.totals_settings import TotalsSettings
from odradek.temporality.totals_store import StoreFailed, TotalsStore
from odradek.waiting.clock import SystemClock

log = logging.getLogger(__name__)

FORGOTTEN_AT_ONCE: Final = 100
"""Limit of clients that are forgotten per batch."""
LONGEST_STEP_MS: Final = 60_000
"""Limit of the time between two batches: a record with a wrong time must not let all clients be forgotten."""
SYSTEM: Final = SystemClock()

MakeEngine = Callable[[Limits, Counts], Engine]


class CumulativeForwarder:
    """Makes the batches of another forwarder cumulative."""

    def __init__(
        self,
        forwarder: Forwarder,
        settings: TotalsSettings,
        make_engine: MakeEngine | None = None,
        monotonic_ns: Callable[[], int] = SYSTEM.monotonic_ns,
    ) -> None:
        """Wrap a forwarder.

        Args:
            forwarder: The forwarder.
            settings: The settings of the totals.
            make_engine: Makes an engine without streams; None for an engine that keeps no gauges.
            monotonic_ns: Measures commits.
        """
        self.forwarder = forwarder
        self.settings = settings
        self.make_engine = make_engine or self.usual_engine
        self.store: TotalsStore | None = None
        """None until the start, unless `store_in` has set it; then the file of the settings."""
        self.engines: dict[int, Engine] = {}
        """By part of the store. A part is missing until it is read, and after a failed commit, because its
        engine held changes that were not stored."""
        self.figures = TotalsFigures()
        self.monotonic_ns = monotonic_ns
        self.added: set[TelemetryRecord] = set()
        """The records of the current batch that have no position and were added. A batch comes again, whole
        or in parts, until all of it is settled."""
        self.now_ms = 0
        self.lost_log, self.rejected_log = SampledLog(log), SampledLog(log)

    @property
    def renamed_points(self) -> int | None:
        """The count of the other forwarder."""
        return self.forwarder.renamed_points if isinstance(self.forwarder, RenamesLabels) else None

    @property
    def refused_points(self) -> Mapping[str, int]:
        """The counts of the other forwarder."""
        return self.forwarder.refused_points if isinstance(self.forwarder, CountsRefusedPoints) else {}

    @property
    def listens(self) -> str | None:
        """The address of the other forwarder."""
        return self.forwarder.listens if isinstance(self.forwarder, Listens) else None

    def is_rebuilt(self) -> bool:
        """Whether the totals are to be built again from the beginning of the log. Call before the start."""
        return self.store is None and self.settings.file is not None and is_rebuilt(self.settings.file)

    def store_in(self, store: TotalsStore) -> None:
        """Store the totals here instead of in the file of the settings. Call before the start."""
        self.store = store

    def keep(self, parts: Collection[int]) -> None:
        """Forget all parts of the store but these: the others belong to other processes."""
        self.engines = {part: engine for part, engine in self.engines.items() if part in parts}

    async def start(self) -> None:
        """Open the store, then start the other forwarder. A second start reads the totals again.

        Raises:
            BadState: The store is damaged, or is another program's.
            StoreFailed: The store cannot be opened.
        """
        self.engines.clear()
        if self.store is None:
            assert self.settings.file is not None, "no file of totals"
            self.store = StateFile(self.settings.file)
        self.store.open()
        await self.forwarder.start()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Add a batch to the totals and deliver these.

        Raises:
            Retry: The totals cannot be stored, or the other forwarder raised it.
            Reject: Records are not OTLP, or the other forwarder raised it.
        """
        if not batch:
            return
        converted, refused = self.committed(batch)
        originals = {id(copy): record for record, copy in converted}
        try:
            if converted:
                await self.forwarder.deliver([copy for _, copy in converted])
        except Retry as error:
            delivered = [originals[id(copy)] for copy in error.delivered]
            raise Retry(str(error), error.after_s, delivered) from error
        except Reject as error:
            records = [originals[id(copy)] for copy in error.records]
            raise Reject(str(error), records, [originals[id(copy)] for copy in error.delivered]) from error
        if refused:
            raise Reject("not OTLP", refused, [record for record, _ in converted])

    async def close(self) -> None:
        """Close the other forwarder, then the store."""
        try:
            await self.forwarder.close()
        finally:
            self.engines.clear()
            if self.store is not None:
                self.store.close()

    def committed(
        self, batch: Sequence[TelemetryRecord]
    ) -> tuple[list[tuple[TelemetryRecord, TelemetryRecord]], list[TelemetryRecord]]:
        """Add a batch and commit.

        Returns:
            Each record with its cumulative copy, and the records that are not OTLP.

        Raises:
            Retry: The totals cannot be stored.
        """
        assert self.store is not None, "deliver before start"
        counts, store = self.figures.counts, self.store
        lost, rejected = counts.lost_records, counts.rejected_points.total()
        try:
            converted, refused = self.added_to(store, batch)
        except (BadState, StoreFailed) as error:
            raise Retry(f"the totals cannot be stored in {store.name}: {error}") from error
        if self.added.isdisjoint(batch):
            self.added = {record for record in batch if record.position is None}
        self.report(lost, rejected)
        return converted, refused

    def added_to(
        self, store: TotalsStore, batch: Sequence[TelemetryRecord]
    ) -> tuple[list[tuple[TelemetryRecord, TelemetryRecord]], list[TelemetryRecord]]:
        """`committed`, with the store's exceptions."""
        converted: list[tuple[TelemetryRecord, TelemetryRecord]] = []
        refused: list[TelemetryRecord] = []
        touched: dict[int, Engine] = {}
        for record in batch:
            part = store.part_of(record.position)
            engine = touched.get(part)
            if engine is None:
                # Only a commit puts it back: after a failure it holds changes that were not stored.
                engine = touched[part] = self.engine_of(store, part)
                del self.engines[part]
            try:
                data = engine.convert(record, again=record in self.added)
                converted.append((record, copy_of(record, data)))
            except NotOtlp:
                refused.append(record)
        now_ms = self.time_of(batch)
        for part, engine in touched.items():
            engine.forget_silent(now_ms, FORGOTTEN_AT_ONCE)
            begun_ns = self.monotonic_ns()
            store.commit(engine, part)
            self.figures.committed(self.monotonic_ns() - begun_ns)
            self.engines[part] = engine
        self.figures.measure(self.engines.values())
        return converted, refused

    def time_of(self, batch: Sequence[TelemetryRecord]) -> int:
        """The time up to which all partitions of a batch were read. It advances by a limited step.

        A client of one partition is not silent because another partition is ahead.
        """
        read_ms: dict[Partition | None, int] = {}
        for record in batch:
            partition, time_ms = record.position and record.position[:2], record.context.received_ms
            read_ms[partition] = max(time_ms, read_ms.get(partition, time_ms))
        first_ms = min(record.context.received_ms for record in batch)
        self.now_ms = min(*read_ms.values(), (self.now_ms or first_ms) + LONGEST_STEP_MS)
        return self.now_ms

    def loaded(self, store: TotalsStore, part: int) -> Engine:
        """An engine with the stored state of a part.

        Raises:
            BadState: The state is damaged.
            StoreFailed: It cannot be read now.
        """
        engine = self.make_engine(self.settings.limits.share(store.parts), self.figures.counts)
        store.load(engine, part)
        self.now_ms = max(self.now_ms, engine.clients.newest_ms)
        return engine

    def engine_of(self, store: TotalsStore, part: int) -> Engine:
        """The engine of a part, loaded if it is missing.

        Raises:
            BadState: The state is damaged.
            StoreFailed: It cannot be read now.
        """
        if part not in self.engines:
            self.engines[part] = self.loaded(store, part)
        return self.engines[part]

    def usual_engine(self, limits: Limits, counts: Counts) -> Engine:
        return Engine(limits, static_labels=self.settings.ignored_attributes, counts=counts)

    def report(self, lost: int, rejected: int) -> None:
        """Log the records and points that are missing in the totals since these counts."""
        assert self.store is not None
        counts = self.figures.counts
        if counts.lost_records > lost:
            self.lost_log.write(
                logging.WARNING,
                self.now_ms,
                "records are missing in the totals: the log had deleted them, or could not read them",
                store=self.store.name,
                records=counts.lost_records - lost,
            )
        if counts.rejected_points.total() > rejected:
            self.rejected_log.write(
                logging.WARNING,
                self.now_ms,
                "data points are missing in the totals",
                store=self.store.name,
                reasons={str(reason): points for reason, points in counts.rejected_points.items()},
            )


def copy_of(record: TelemetryRecord, data: bytes) -> TelemetryRecord:
    """The record with other data."""
    payload = record.payload
    # `replace` of the record would take three times as long.
    return TelemetryRecord(
        context=record.context,
        push_interval_ms=record.push_interval_ms,
        payload=replace(payload, data=data),
        subscription_id=record.subscription_id,
        codec=record.codec,
        observed=record.observed,
        labeled=record.labeled,
        source=record.source,
        origin=record.origin,
        position=record.position,
    )
