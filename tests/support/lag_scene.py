"""A broker in memory whose groups' lag is measured, and what is written about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.broker.broker import Broker
from odradek.broker.fetch.fetch_reads import FetchReads
from odradek.broker.host_positions import HostPositions
from odradek.broker.host_readers import HostReaders
from odradek.broker.lag_rounds import CLIENT_ROUNDS, ROUNDS, LagRounds, matcher
from odradek.group.committed_offset import CommittedOffset
from odradek.lag.lag_settings import HostLagSettings, LagSettings
from odradek.log.control_batch import TransactionMarker
from odradek.log.partition_log import PartitionLog
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.record_source import RecordSource
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.broker import make_broker
from support.group_client import GroupClient

Place = tuple[str, ...]
"""The values of a series' labels."""


class LagScene:
    """A host with topic ``t`` of one partition; time passes when the test says so.

    Args:
        broker: Of the host.
        clients: The lag of clients is measured, not that of groups.
        settings: Of `LagSettings`.
    """

    def __init__(self, broker: Broker | None = None, *, clients: bool = False, **settings: Any) -> None:
        self.client = GroupClient(broker=broker or make_broker())
        self.broker, self.clock = self.client.broker, self.client.clock
        if "t" not in self.broker.topics.by_name:
            self.broker.topics.create("t", 1, {})
        self.records: list[TelemetryRecord] = []
        self.source = RecordSource("lag", self.broker.telemetry, self.keep)
        self.series: dict[str, dict[Place, float]] = {}
        """The series that a reader of the records would show, by metric."""
        chosen = LagSettings(**settings)
        rooms = self.broker.groups, self.broker.topics, self.clock
        wanted = matcher(chosen.groups), matcher(chosen.topics)
        positions: HostPositions | HostReaders = HostPositions(*rooms, *wanted, self.broker.shares.deliveries)
        if clients:
            self.broker.fetch_reads = FetchReads()
            positions = HostReaders(self.broker.fetch_reads, *rooms, *wanted, "host-1")
        self.rounds = LagRounds(
            positions,
            chosen,
            HostLagSettings().interval_ms,
            cluster_id="c",
            node_id=1,
            source=self.source,
            clock=self.clock,
            timer=self.clock.timer,
            steps=self.broker.steps,
            metrics=CLIENT_ROUNDS if clients else ROUNDS,
        )
        self.sequence = 0
        self.rounds.start()

    def keep(self, record: TelemetryRecord) -> bool:
        """Show what a record says."""
        self.records.append(record)
        for entry in MetricsData.FromString(record.payload.data).resource_metrics:
            for metric in entry.scope_metrics[0].metrics:
                name = metric.name.removeprefix("odradek.")
                shown = self.series.setdefault(name, {})
                for point in metric.gauge.data_points:
                    place = tuple(pair.value.string_value for pair in point.attributes)
                    if point.flags:
                        del shown[place]
                    else:
                        shown[place] = point.as_double if point.HasField("as_double") else point.as_int
        return True

    def log(self, topic: str = "t", index: int = 0) -> PartitionLog:
        return self.broker.topics.log(topic, index)

    def write(
        self, count: int = 1, *, index: int = 0, topic: str = "t", stamp_ms: int | None = None, **batch: Any
    ) -> None:
        """Append records in one batch, with the present as their timestamp unless another one is given."""
        stamp_ms = self.clock.now_ms() if stamp_ms is None else stamp_ms
        records = build_batch([Record(b"k", b"v", stamp_ms)] * count, **batch)
        join = (lambda _header: None) if batch else None
        self.log(topic, index).append(records, self.clock.now_ms(), join_transaction=join)

    def write_in_transaction(self, count: int = 1) -> None:
        """Append records in the open transaction of producer 7, which may begin with them."""
        self.write(count, producer_id=7, producer_epoch=0, base_sequence=self.sequence, transactional=True)
        self.sequence += count

    def end_transaction(self, *, committed: bool = True) -> None:
        self.log().append_marker(TransactionMarker(7, 0, committed), self.clock.now_ms())

    def commit(self, offset: int, group: str = "g", *, topic: str = "t", index: int = 0) -> None:
        """Commit an offset, as a consumer that assigns its own partitions."""
        committed = CommittedOffset(offset=offset, commit_timestamp_ms=self.clock.now_ms())
        topic_id = self.broker.topics.by_name[topic].id
        self.broker.groups.offsets.commit(group, {(topic_id, index): committed})

    def round(self, rounds: int = 1) -> None:
        """Let time pass until some rounds have ended."""
        until = self.rounds.rounds["completed"] + rounds
        while self.rounds.rounds["completed"] < until:
            self.clock.advance(500)

    def of(self, group: str = "g", *place: str) -> Mapping[str, float]:
        """The series of a group and a place, by metric without `group.`; by default of partition 0 of `t`."""
        wanted = (group, *(place or ("t", "0")))
        return {
            name.removeprefix("group."): shown[wanted]
            for name, shown in sorted(self.series.items())
            if wanted in shown
        }
