"""The engine: turns the delta values of pushes into cumulative ones.

A record is added once, by its position in the log; if it comes again, it only gets the totals. Nothing here
reads a clock or a file: the caller commits `Engine.take_changes`, totals and positions, in one transaction,
and sends a converted push only after that. So a crash neither loses nor doubles an increment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import NotOtlp
from odradek.otlp.push_bytes import body_start
from odradek.plugin import Origin, TelemetryRecord
from odradek.temporality.client_state import ClientState, Distribution, Mark
from odradek.temporality.clients import Changes, Clients, oldest_live_s
from odradek.temporality.conversion import Conversion, streams_of
from odradek.temporality.counts import Counts, Limits
from odradek.temporality.layout import Layout, Layouts
from odradek.temporality.parsed_push import PushParser, parse
from odradek.temporality.positions import Positions
from odradek.temporality.stream_key import NOT_IDENTITY, Identity, StreamKeys, canonical
from odradek.temporality.stream_times import NS_PER_MS, StreamTimes
from odradek.temporality.usual_push import add_usual, write_usual

LATEST_MS: Final = 2**32 * 1000 - 1
"""The end of the seconds of 32 bits, in the year 2106."""
LONGEST_INTERVAL_MS: Final = 2**31 - 1


class Series(NamedTuple):
    """The current value of a stream."""

    identity: Identity
    value: float
    """The total; of a histogram its sum."""
    start_ns: int
    """Nanoseconds of the client's clock, as is the next."""
    last_ns: int
    distribution: Distribution | None


class Engine:
    """The streams of all clients of one destination. Not thread-safe."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        static_labels: Iterable[str] = (),
        keep_gauges: bool = False,
        reset_on_gap: bool = False,
        counts: Counts | None = None,
    ) -> None:
        """Make an engine without streams.

        Args:
            limits: The bounds of the engine.
            static_labels: Attributes of Resources that the host sets besides its own labels.
            keep_gauges: Keep the last value of each gauge, for `series`.
            reset_on_gap: Begin a new total after a gap, as OpenTelemetry's specification does.
            counts: Counts that several engines share.
        """
        self.limits = limits or Limits()
        self.counts = counts or Counts()
        self.reset_on_gap = reset_on_gap
        self.keys = StreamKeys()
        self.clients = Clients(self.limits, self.counts, self.keys)
        self.layouts = Layouts(self.keys, self.limits)
        self.positions = Positions()
        self.not_identity = NOT_IDENTITY | frozenset(static_labels)
        self.parser = PushParser(self.keys, self.identity_of, keep_gauges=keep_gauges)

    @property
    def held_bytes(self) -> int:
        """Approximate memory of the engine."""
        return self.clients.held_bytes + self.layouts.held_bytes

    def convert(self, record: TelemetryRecord, *, again: bool = False) -> bytes:
        """Add a record to the totals of its client, and return its push with these totals.

        Gauges and summaries are unchanged. A point that cannot be added is left out and counted. A record
        that was added before gets the current totals.

        Args:
            record: A record of the telemetry topic.
            again: The record was added before. The engine itself recognizes a record with a position.

        Returns:
            MetricsData; empty if nothing is left of the push.

        Raises:
            NotOtlp: The payload is not MetricsData. Nothing was added, but the engine has moved past it.
        """
        is_new = not again and self.take(record)
        # Headers of a record that another program wrote may have any number.
        payload, now_ms = record.payload, within(record.context.received_ms, LATEST_MS)
        interval_ms = within(record.push_interval_ms, LONGEST_INTERVAL_MS)
        client = self.clients.of(payload.client_instance_id, now_ms)
        converted = b""
        if payload.data:
            times = StreamTimes(
                self.counts, self.reset_on_gap, client, interval_ms * NS_PER_MS, now_ms * NS_PER_MS
            )
            converted = self.convert_push(payload.data, payload.client_instance_id, times, is_new=is_new)
        if is_new:
            self.clients.heard_from(
                payload.client_instance_id, client, now_ms, interval_ms, payload.terminating
            )
        return converted

    def take(self, record: TelemetryRecord) -> bool:
        """Move past a record; False if it was added before."""
        skipped: int | None = 0
        if record.position is not None:
            skipped = self.positions.take(record.position, record.payload.client_instance_id)
        if skipped is None:
            self.counts.repeated_records += 1
            return False
        self.counts.records += 1
        self.counts.lost_records += skipped
        return True

    def convert_push(self, data: bytes, instance_id: bytes, times: StreamTimes, *, is_new: bool) -> bytes:
        """Convert a push, without parsing it if its layout is known."""
        client = times.client
        split = body_start(data)
        if split is None:
            return self.convert_parsed(data, None, instance_id, times, is_new=is_new)
        resource = self.resource_identity(client, data[split[0] : split[1]])
        body = data[split[1] :]
        layout = self.layouts.find(body, resource, client.layout_number)
        if layout is None or not self.find_places(layout, instance_id, times, is_new):
            return self.convert_parsed(data, None if layout else body, instance_id, times, is_new=is_new)
        if is_new and not add_usual(layout, body, client, times, self.counts):
            return self.convert_parsed(data, None, instance_id, times, is_new=is_new)
        client.layout_number = layout.number
        return write_usual(layout, data, split[1], client)

    def find_places(self, layout: Layout, instance_id: bytes, times: StreamTimes, is_new: bool) -> bool:
        """Find the streams of a layout in a client, and add those that it lacks; False if some stay
        missing."""
        client = times.client
        if layout.shape_number == client.shape.number:
            return True
        keys = (*layout.keys, *layout.gauge_keys)
        positions = client.shape.positions
        if not all(key in positions for key in keys):
            now_ms = times.now_ns // NS_PER_MS
            if not is_new or not self.clients.admit(instance_id, client, keys, now_ms):
                return False
            positions = client.shape.positions
        layout.places = [positions[key] for key in keys]
        layout.shape_number = client.shape.number
        return True

    def convert_parsed(
        self, data: bytes, unknown: bytes | None, instance_id: bytes, times: StreamTimes, *, is_new: bool
    ) -> bytes:
        """Convert a push of any kind.

        Args:
            data: The push.
            unknown: Its body, if its layout is to be learned.
            instance_id: The client instance.
            times: The times of its streams.
            is_new: Add its points. Otherwise it was added before, and only gets the totals.

        Raises:
            NotOtlp: It is not MetricsData.
        """
        parsed = parse(data)
        client = times.client
        metrics = list(self.parser.metrics(parsed))
        if is_new:
            self.clients.admit(instance_id, client, streams_of(metrics), times.now_ns // NS_PER_MS)
        if unknown is not None:
            points = self.parser.learnable(parsed, metrics)
            if points is not None:
                resource = self.identity_of(parsed.resource_metrics[0].resource)
                client.layout_number = self.layouts.learn(unknown, resource, points)
        before = client.held_bytes
        conversion = Conversion(client, self.counts, times)
        if is_new:
            conversion.add_all(metrics)
        kept = [conversion.convert(metric) for metric in metrics]
        self.clients.resized(instance_id, client, before)
        self.keys.forget_unused()
        if not all(kept):
            drop_empty(parsed)
        return parsed.SerializeToString()

    def resource_identity(self, client: ClientState, serialized: bytes) -> bytes:
        """The identity of a Resource, which a client seldom changes.

        Raises:
            NotOtlp: The bytes are not a Resource.
        """
        # A client keeps the hash of its Resource instead of its few hundred bytes.
        found = hash(serialized)
        if client.resource_hash != found:
            try:
                client.resource = self.identity_of(Resource.FromString(serialized))
            except DecodeError as error:
                raise NotOtlp(f"not a Resource: {error}") from None
            client.resource_hash = found
        return client.resource

    def identity_of(self, resource: Resource) -> bytes:
        """The attributes of a Resource that are part of its streams' identity."""
        return canonical(resource.attributes, self.not_identity)

    def series(self, instance_id: bytes, now_ms: int | None = None) -> Iterator[Series]:
        """The current values of an instance's streams.

        Args:
            instance_id: The client instance.
            now_ms: Leave out the streams that have ended by this time: all of them if the instance was silent
                for too long, otherwise those that were silent for that long. None for all streams.
        """
        client = self.clients.states.get(instance_id)
        if client is None or (now_ms is not None and not self.is_shown(client, now_ms)):
            return
        oldest_s = 0 if now_ms is None or client.closed else oldest_live_s(client, now_ms)
        for position, identity in enumerate(client.shape.identities):
            start, last = client.times[2 * position : 2 * position + 2]
            value = client.amounts[2 * position] + client.amounts[2 * position + 1]
            ended = now_ms is not None and client.marks.get(position, Mark(0)) & Mark.ENDED
            recent = client.seen[position] >= oldest_s
            if last and not ended and value == value and recent and client.is_shown(position):
                yield Series(identity, value, start, last, client.distributions.get(position))

    def is_shown(self, client: ClientState, now_ms: int) -> bool:
        """Whether an instance has not ended. After its goodbye it is shown for `Limits.linger_ms`."""
        if client.closed:
            return now_ms - client.last_ms <= self.limits.linger_ms
        return self.clients.is_live(client, now_ms)

    def forget_silent(self, now_ms: int, at_most: int = 1_000) -> int:
        """Forget instances that were silent for longer than they are retained; return how many.

        Args:
            now_ms: Epoch milliseconds.
            at_most: Limit for one call.
        """
        return self.clients.forget_silent(now_ms, at_most)

    def take_changes(self) -> tuple[Changes, list[Origin]]:
        """The state that has changed since the last call, and the next offsets: commit both together."""
        self.keys.forget_unused()
        return self.clients.take_changes(), self.positions.take_changes()

    def skip_changes(self) -> None:
        """Forget what has changed since the last call: for an engine whose state is not stored."""
        self.keys.forget_unused()
        self.clients.changed.clear()
        self.positions.changed.clear()

    def restore(
        self, shapes: Mapping[bytes, bytes], clients: Mapping[bytes, bytes], positions: Iterable[Origin]
    ) -> None:
        """Continue from a stored state, before the first record.

        Raises:
            BadState: The state is damaged.
        """
        self.clients.restore(shapes, clients)
        self.positions = Positions(positions)


def within(number: int, most: int) -> int:
    return min(max(number, 0), most)


def drop_empty(parsed: MetricsData) -> None:
    """Remove metrics that have lost all of their points, and scopes and Resources without metrics."""
    for entry in parsed.resource_metrics:
        for scope in entry.scope_metrics:
            kept = [metric for metric in scope.metrics if has_points(metric)]
            del scope.metrics[:]
            scope.metrics.extend(kept)
        scopes = [scope for scope in entry.scope_metrics if scope.metrics]
        del entry.scope_metrics[:]
        entry.scope_metrics.extend(scopes)
    entries = [entry for entry in parsed.resource_metrics if entry.scope_metrics]
    del parsed.resource_metrics[:]
    parsed.resource_metrics.extend(entries)


def has_points(metric: Metric) -> bool:
    which = metric.WhichOneof("data")
    return which is not None and len(getattr(metric, which).data_points) > 0
