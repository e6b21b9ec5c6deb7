"""The entrance for records that no client pushed to this host.

The host derives some itself, and plugins bring others in (``odradek_source``). They take the way of a push
from the labels on: the same enrichers, the same log, the same receivers. Each source has an account of its
own, with the law of pushes: a record that was received is stored, repeated, rejected or waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import Final

from odradek.otlp.labels import EncodedLabels
from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance, new_instance
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.client_metrics_stats import InstanceStats
from odradek.telemetry.instance_match import metadata_of
from odradek.telemetry.labeled_record import labeled_record
from odradek.telemetry.payload import PayloadWork
from odradek.telemetry.push_accounts import PushAccounts
from odradek.telemetry.recent_origins import RecentOrigins
from odradek.waiting.deferred import Deferred, after
from odradek.wire.compression import Codec, TooLarge
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError

Keep = Callable[[TelemetryRecord], bool | Deferred[bool]]
"""Store a record; the outcome, now or later, is whether it is stored."""

UNCOMPRESSED: Final = int(Codec.NONE)


class Outcome(Enum):
    """The end of a record at the entrance."""

    STORED = auto()
    REPEATED = auto()
    NO_ROOM = auto()


@dataclass(slots=True, eq=False)
class RecordSource:
    """One source of records.

    A client of the source is matched with the subscriptions as a client that pushes, but is not among the
    instances of those.
    """

    name: str
    """Label of the metrics about the source."""
    manager: ClientMetricsManager
    keep: Keep
    accounts: PushAccounts = field(default_factory=PushAccounts)
    requests: dict[str, int] = field(default_factory=dict)
    """Requests of senders by outcome. Counted on the source's thread: read a copy."""
    recent: RecentOrigins = field(default_factory=RecentOrigins)
    """The origins of records that were stored. The sources of a host share one."""

    @property
    def subscription_version(self) -> int:
        """Incremented when the subscriptions change: the instances made before are outdated."""
        return self.manager.subscriptions.version

    def instance(self, client_instance_id: bytes, context: RequestContext) -> ClientMetricsInstance:
        """A client under the current subscriptions: its plan has the metrics and the interval."""
        metadata = metadata_of(client_instance_id, context)
        plan = self.manager.subscriptions.plan(metadata)
        return new_instance(metadata, plan, self.subscription_version, InstanceStats(client_instance_id))

    def offer(
        self, instance: ClientMetricsInstance, context: RequestContext, data: bytes, *, terminating: bool
    ) -> None:
        """Label and store a payload that the host derived. A payload that cannot be stored is lost and
        counted.

        Args:
            instance: The client, as `instance` made it.
            context: The request that the record appears to come from.
            data: A serialized ``MetricsData``.
            terminating: This is the client's last record.
        """
        payload = ClientTelemetryPayload(instance.client_instance_id, terminating, data)
        record = TelemetryRecord(
            context,
            instance.push_interval_ms,
            payload,
            instance.subscription_id,
            UNCOMPRESSED,
            observed=True,
            labeled=False,
        )
        after(self.manager.enrichers.of_client(instance, context), partial(self.bring, record))

    def bring(self, record: TelemetryRecord, labels: EncodedLabels | None) -> None:
        """Label and store a record that the host made. One that cannot be stored is lost and counted."""
        try:
            ready = self.prepared(record, labels)
        except WireError as error:
            self.reject(error)
        else:
            self.take(ready)

    def prepared(self, record: TelemetryRecord, labels: EncodedLabels | None) -> TelemetryRecord:
        """The record with its labels, checked: it is within the limits of a push. Call on any thread.

        Args:
            record: Unchanged.
            labels: The labels to set; ignored if the record has its labels.

        Raises:
            TooLarge: It exceeds a limit of pushes.
            WireError: Its payload is not OTLP.
        """
        return self.of_this_source(labeled_record(record, labels, self.manager.limits), record)

    def is_large(self, record: TelemetryRecord) -> bool:
        """Whether a record goes to `prepare` and not to `prepared`, which refuses one that is too large."""
        return self.manager.inline_bytes < len(record.payload.data) <= self.manager.limits.max_bytes

    def prepare(
        self, record: TelemetryRecord, labels: EncodedLabels | None, done: Callable[[bytes | Exception], None]
    ) -> None:
        """Have a large record's payload checked and labeled elsewhere; see `opened`. Call on the host's loop.

        Args:
            record: Unchanged.
            labels: As for `prepared`.
            done: Called with the payload or the error.
        """
        used = None if record.labeled else labels
        data, limits = record.payload.data, self.manager.limits
        self.manager.offload(PayloadWork(codec=UNCOMPRESSED, data=data, labels=used, limits=limits), done)

    def opened(self, record: TelemetryRecord, data: bytes) -> TelemetryRecord:
        """The record with the payload that `prepare` has made of it."""
        if record.labeled:
            return record
        ready = replace(record, payload=replace(record.payload, data=data), labeled=True)
        return self.of_this_source(ready, record)

    def of_this_source(self, ready: TelemetryRecord, record: TelemetryRecord) -> TelemetryRecord:
        """The prepared record, with the source of the record that it was made of."""
        if ready is not record and not record.observed:
            ready.source = record.source or self.name
        return ready

    def reject(self, error: WireError) -> None:
        """Count a record that `prepared` refused."""
        self.accounts.received += 1
        code = ErrorCode.TELEMETRY_TOO_LARGE if isinstance(error, TooLarge) else ErrorCode.INVALID_RECORD
        self.accounts.reject(code)

    def unreadable(self, records: int) -> None:
        """Count records that are not telemetry at all."""
        if records > 0:
            self.accounts.received += records
            self.accounts.reject(ErrorCode.INVALID_RECORD, records)

    def take(self, record: TelemetryRecord) -> Outcome | Deferred[Outcome]:
        """Store a record that `prepared` returned, then give it to the receivers."""
        self.accounts.received += 1
        if not self.recent.add(record):
            self.accounts.repeated += 1
            return Outcome.REPEATED
        self.accounts.waiting += 1
        return after(self.keep(record), partial(self.settle, record))

    def settle(self, record: TelemetryRecord, kept: bool) -> Outcome:
        """Give a stored record to the receivers."""
        self.accounts.waiting -= 1
        if not kept:
            self.recent.forget(record)
            self.accounts.reject(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            return Outcome.NO_ROOM
        if not record.payload.data:
            self.accounts.empty += 1
            return Outcome.STORED
        self.accounts.appended += 1
        self.manager.plugin.export(record.context, record.payload, record.push_interval_ms, False)
        return Outcome.STORED
