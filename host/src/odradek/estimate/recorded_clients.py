"""The clients of the last intervals, as the records of the telemetry topic show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from odradek.estimate.pushed_streams import PushedPoints, Stream, StreamReader, points_of
from odradek.estimate.series_model import OBSERVED_CLIENT, library_of
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata, metadata_of

P = TypeVar("P")
"""A partition, however it is named."""
LIVE_INTERVALS: Final = 3
SLACK_MS: Final = 30_000
LEAST_LIVE_MS: Final = 90_000


def live_ms(push_interval_ms: int) -> int:
    """How long a client may be silent and is still there: a push may be refused, and the next one comes up to
    one and a half intervals after the client has asked for its subscription again.
    """
    return max(LIVE_INTERVALS * push_interval_ms + SLACK_MS, LEAST_LIVE_MS)


@dataclass(slots=True, eq=False)
class RecordedClient:
    """A client instance, from its records."""

    metadata: ClientMetricsInstanceMetadata
    observed: bool
    """Whether a gateway or a host makes its metrics."""
    principal: str
    group_id: str
    received_ms: int
    push_interval_ms: int
    subscription_id: int
    """Of its latest push."""
    push_bytes: int
    streams: frozenset[Stream]
    """Of the pushes with that subscription while the client is live: Prometheus holds no others."""
    seen_ms: dict[frozenset[Stream], int]
    """When each set of them was pushed last."""
    pushed_streams: int
    """Of the latest push with metrics."""
    is_terminated: bool

    @property
    def library(self) -> str:
        """What decides which metrics it has."""
        if self.observed:
            return OBSERVED_CLIENT
        return library_of(self.metadata.client_software_name, self.metadata.client_software_version)

    def is_live(self, now_ms: int) -> bool:
        """Whether it may push again."""
        return not self.is_terminated and now_ms - self.received_ms <= live_ms(self.push_interval_ms)


@dataclass(slots=True, eq=False)
class RecordedClients:
    """All clients of some records, which are added in the order of each client's pushes."""

    reader: StreamReader = field(default_factory=StreamReader)
    by_id: dict[bytes, RecordedClient] = field(default_factory=dict)
    unread: int = 0
    """Pushes that could not be read."""
    problem: str = ""
    """Of the latest of them."""

    def add(self, record: TelemetryRecord) -> None:
        """Add a push if it counts, and if it can be read."""
        if counts(record):
            try:
                self.add_points(record, points_of(record.payload.data))
            except NotOtlp as error:
                self.pass_over(error)

    def pass_over(self, error: Exception) -> None:
        """Count a push that cannot be read."""
        self.unread += 1
        self.problem = str(error) or repr(error)

    def add_points(self, record: TelemetryRecord, pushed: PushedPoints) -> None:
        """Add a push with these data points."""
        streams = self.reader.read(pushed.points)
        client_instance_id = record.payload.client_instance_id
        client = self.by_id.get(client_instance_id)
        if client is None or client.subscription_id != record.subscription_id:
            client = self.by_id[client_instance_id] = RecordedClient(
                metadata=metadata_of(client_instance_id, record.context),
                observed=record.observed,
                principal=record.context.connection.principal,
                group_id=pushed.group_id,
                received_ms=record.context.received_ms,
                push_interval_ms=record.push_interval_ms,
                subscription_id=record.subscription_id,
                push_bytes=0,
                streams=frozenset(),
                seen_ms={},
                pushed_streams=0,
                is_terminated=False,
            )
        client.received_ms = record.context.received_ms
        client.push_interval_ms = record.push_interval_ms
        client.is_terminated = record.payload.terminating
        client.principal = record.context.connection.principal
        if streams:
            client.push_bytes = len(record.payload.data)
            client.pushed_streams = len(streams)
        client.seen_ms[streams] = client.received_ms
        oldest_ms = client.received_ms - live_ms(client.push_interval_ms)
        client.seen_ms = {each: at for each, at in client.seen_ms.items() if at >= oldest_ms}
        client.streams = self.reader.shared(frozenset().union(*client.seen_ms))

    def live(self, now_ms: int) -> Iterator[RecordedClient]:
        """The clients that may push again."""
        return (client for client in self.by_id.values() if client.is_live(now_ms))


def counts(record: TelemetryRecord) -> bool:
    """Whether subscriptions apply to the record's sender, and its own is still in force: not if the push was
    refused, or if a source wrote the record. Subscriptions apply to observed clients, too.
    """
    return record.observed or not (record.source is not None or record.payload.refused)


def starts(begins: Mapping[P, int], ends: Mapping[P, int], most: int) -> dict[P, int]:
    """The offsets to read partitions from, so that no more than the newest records are read.

    Args:
        begins: The first offset that is of interest, by partition.
        ends: The offset after the last record.
        most: How many records to read of all partitions together.
    """
    positions: dict[P, int] = {}
    rest = most
    # The shortest first: what a partition does not need, the longer ones may use.
    ordered = sorted(begins, key=lambda at: ends[at] - begins[at])
    for left, each in zip(range(len(begins), 0, -1), ordered, strict=True):
        count = min(ends[each] - begins[each], rest // left)
        positions[each] = ends[each] - count
        rest -= count
    return positions
