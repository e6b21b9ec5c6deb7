"""A forwarder that gets cumulative values: wraps the forwarder of any destination.

A batch is added to the totals, these are committed with the positions, and only then it is delivered. A batch
that comes again, after a failed delivery or a crash, is delivered with the totals of then, and not added.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import Final

from odradek.plugin import ClientTelemetryPayload, Forwarder, NotOtlp, Reject, Retry, TelemetryRecord
from odradek.sampled_log import SampledLog
from odradek.temporality.engine import Engine
from odradek.temporality.state_file import StateFile
from odradek.temporality.totals_settings import TotalsSettings

log = logging.getLogger(__name__)

FORGOTTEN_AT_ONCE: Final = 100
"""Limit of clients that are forgotten per batch."""
LONGEST_STEP_MS: Final = 60_000
"""Time that may pass from batch to batch: a record with a wrong time must not forget all clients."""


class CumulativeForwarder:
    """Makes the batches of another forwarder cumulative."""

    def __init__(self, forwarder: Forwarder, settings: TotalsSettings) -> None:
        self.forwarder = forwarder
        self.settings = settings
        self.file: StateFile | None = None
        self.engine: Engine | None = None
        """None until the state is read, and after a failed commit: what it holds was not stored."""
        self.added: set[TelemetryRecord] = set()
        """The records of the current batch that have no position and were added: a batch comes again as a
        whole or in parts until all of it is settled."""
        self.now_ms = 0
        self.lost_log, self.rejected_log = SampledLog(log), SampledLog(log)

    async def start(self) -> None:
        """Open the file of the totals, then start the other forwarder. A second start reads the file again.

        Raises:
            BadState: The file is damaged, or is another program's.
            sqlite3.Error: The file cannot be opened.
        """
        self.close_file()
        self.file = StateFile(self.settings.file)
        self.engine = self.loaded()
        await self.forwarder.start()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Add a batch to the totals and deliver these.

        Raises:
            Retry: The totals cannot be stored, or as the other forwarder.
            Reject: Records are not OTLP, or as the other forwarder.
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
        """Close the other forwarder, then the file."""
        try:
            await self.forwarder.close()
        finally:
            self.close_file()

    def committed(
        self, batch: Sequence[TelemetryRecord]
    ) -> tuple[list[tuple[TelemetryRecord, TelemetryRecord]], list[TelemetryRecord]]:
        """Add a batch and commit.

        Returns:
            Each record with its cumulative copy, and the records that are not OTLP.

        Raises:
            Retry: The totals cannot be stored.
        """
        assert self.file is not None, "deliver before start"
        try:
            engine = self.engine = self.engine or self.loaded()
            lost, rejected = engine.counts.lost_records, engine.counts.rejected_points.total()
            converted, refused = [], []
            for record in batch:
                try:
                    data = engine.convert(record, again=record in self.added)
                    converted.append((record, copy_of(record, data)))
                except NotOtlp:
                    refused.append(record)
            engine.forget_silent(self.time_of(batch), FORGOTTEN_AT_ONCE)
            self.file.commit(engine)
        except sqlite3.Error as error:
            self.engine = None
            raise Retry(f"the totals cannot be stored in {self.settings.file}: {error}") from error
        except BaseException:
            self.engine = None
            raise
        if self.added.isdisjoint(batch):
            self.added = {record for record in batch if record.position is None}
        self.report(engine, lost, rejected)
        return converted, refused

    def time_of(self, batch: Sequence[TelemetryRecord]) -> int:
        """The time of a batch, by its records."""
        times_ms = [record.context.received_ms for record in batch]
        self.now_ms = min(max(times_ms), (self.now_ms or min(times_ms)) + LONGEST_STEP_MS)
        return self.now_ms

    def loaded(self) -> Engine:
        """An engine with the stored state."""
        assert self.file is not None
        engine = Engine(self.settings.limits, static_labels=self.settings.ignored_attributes)
        self.file.load(engine)
        self.now_ms = engine.clients.newest_ms
        return engine

    def report(self, engine: Engine, lost: int, rejected: int) -> None:
        """Log what is missing in the totals, since these counts."""
        counts, file = engine.counts, str(self.settings.file)
        if counts.lost_records > lost:
            self.lost_log.write(
                logging.WARNING,
                self.now_ms,
                "records are missing in the totals: the log had deleted them, or could not read them",
                file=file,
                records=counts.lost_records - lost,
            )
        if counts.rejected_points.total() > rejected:
            self.rejected_log.write(
                logging.WARNING,
                self.now_ms,
                "data points are missing in the totals",
                file=file,
                reasons={str(reason): points for reason, points in counts.rejected_points.items()},
            )

    def close_file(self) -> None:
        if self.file is not None:
            self.file.close()
        self.file = self.engine = None


def copy_of(record: TelemetryRecord, data: bytes) -> TelemetryRecord:
    """The record with other data."""
    payload = record.payload
    return TelemetryRecord(
        context=record.context,
        push_interval_ms=record.push_interval_ms,
        payload=ClientTelemetryPayload(payload.client_instance_id, payload.terminating, data),
        subscription_id=record.subscription_id,
        codec=record.codec,
        observed=record.observed,
        labeled=record.labeled,
        source=record.source,
        origin=record.origin,
        position=record.position,
    )
