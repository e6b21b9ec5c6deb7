"""A gateway's observation without a gateway: pairs whose frames are written by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from conformance.telemetry_broker import TelemetryBroker
from odradek.broker.dispatch.routes import API_VERSIONS_KEY
from odradek.gateway.observation.apis import PASSING_LOOKED_AT, PRODUCE
from odradek.gateway.observation.observation import SOURCE_NAME, Observation, unnamed
from odradek.gateway.observation.observer import CloseCause, PairObserver
from odradek.gateway.observation.settings import ObservationSettings, Observe
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.produce_beginning import (
    NOTHING,
    batches_walk,
    counted,
    first_topic,
    nearest,
    read_acks,
)
from odradek.gateway.produce_requests import BatchReader
from odradek.plugin import TelemetryRecord
from odradek.telemetry.record_source import RecordSource
from odradek.telemetry.topology import Topology
from odradek.testing.data_points import DataPoint, data_points
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import encode
from odradek.wire.declared import DeclaredResponses
from odradek.wire.header import RequestHeader, request_header

INTERVAL_MS = 10_000
PLENTY_MS = 3 * INTERVAL_MS
Answer = bool | Deferred[bool]


class Stage:
    """An observation, the subscriptions it obeys, and the records it wrote."""

    def __init__(
        self,
        observe: Observe = Observe.SILENT,
        *,
        max_clients: int = 10_000,
        cardinality: int = 1_000,
        metrics: str = "*",
        keep: Callable[[TelemetryRecord], Answer] | None = None,
        follows_fetches: bool = False,
        topology: Topology | None = None,
        name_of: Callable[[bytes], str | None] = unnamed,
    ) -> None:
        self.telemetry = TelemetryBroker(max_decompressed_bytes=1 << 20)
        self.clock = self.telemetry.clock
        self.records: list[TelemetryRecord] = []
        self.subscribe(metrics)
        self.source = RecordSource(SOURCE_NAME, self.telemetry.manager, keep or self.keep)
        self.observation = Observation(
            ObservationSettings(observe=observe, max_clients=max_clients, cardinality=cardinality),
            self.source,
            self.clock,
            self.clock.timer,
            DeclaredResponses(),
            self.telemetry.manager.goodbyes,
            origin="gateway-1",
            follows_fetches=follows_fetches,
            topology=topology,
            name_of=name_of,
        )
        self.observation.start()

    def subscribe(self, metrics: str, interval_ms: int = INTERVAL_MS, match: str = "") -> None:
        """Replace the only subscription; empty metrics delete it."""
        properties = {"metrics": metrics, "interval.ms": str(interval_ms), "match": match} if metrics else {}
        self.telemetry.update("all", properties)

    def keep(self, push: TelemetryRecord) -> Answer:
        self.records.append(push)
        return True

    def pair(self, client_id: str = "orders", node_id: int | None = 1, **more: Any) -> Pair:
        """A new connection of a client."""
        identity = PairIdentity("10.0.0.7", 40_000, "PLAINTEXT", node_id, client_id)
        identity.software_name, identity.software_version = "kafka-python", "2.2.15"
        for name, value in more.items():
            setattr(identity, name, value)
        return Pair(self, identity, self.observation.opened(identity))

    def ended(self) -> list[DataPoint]:
        """The data points of all windows that end within the next intervals."""
        before = len(self.records)
        self.clock.advance(PLENTY_MS)
        return self.points(before)

    def points(self, since: int = 0) -> list[DataPoint]:
        """The data points of the records written."""
        return [point for push in self.records[since:] for point in data_points(push.payload.data)]


@dataclass
class Pair:
    """One connection of a client to the gateway."""

    stage: Stage
    identity: PairIdentity
    observer: PairObserver
    in_flight: int = 0
    serial: int = 0
    head_bytes: int = 1 << 20
    """So much of a request has arrived when its header is known."""
    piece_bytes: int = 1 << 20
    outstanding: list[int] = field(default_factory=list)

    def send(self, request: Any, version: int, *, answered: bool = True) -> int:
        """Pass a request; return the length of its frame."""
        key = request.API_KEY
        self.serial += 1
        header = RequestHeader(key, version, self.serial, self.identity.client_id)
        frame = request_header(header, version in request.FLEXIBLE) + encode(request, version)
        self.send_frame(key, version, frame, answered=answered)
        return len(frame) + 4

    def send_frame(self, key: int, version: int, frame: bytes, *, answered: bool = True) -> None:
        """Pass a request frame without its length, between bytes of others."""
        if answered:
            self.outstanding.append(key)
        size = len(frame)
        if key == PRODUCE:
            self.produce(version, frame)
            return
        if key in PASSING_LOOKED_AT:
            self.observer.look(key, version, b"be" + size.to_bytes(4) + frame + b"after it", 6)
        self.observer.requests(key, version, 1, size + 4, len(self.outstanding))

    def produce(self, version: int, frame: bytes) -> None:
        """Pass a Produce request, whose acks at least have arrived."""
        size = len(frame)
        found = read_acks(b"bef." + frame, 4, size, version)
        assert found is not None
        acks, acks_end = found
        first = max(self.head_bytes, acks_end)
        records, batches, batch_bytes, topics = NOTHING
        if first >= size:
            walk = batches_walk(nearest(version))
            records, batches, batch_bytes, topics = counted(walk, frame + b"after it", acks_end, size)
        in_flight = len(self.outstanding)
        self.observer.produce(version, acks, 1, size + 4, records, batches, batch_bytes, in_flight)
        self.observer.wrote(version, topics)
        if first < size:
            self.observer.writes(version, first_topic(frame[:first], acks_end, version))
            reader = BatchReader(self.observer.batches, version, size, acks_end)
            for start in (0, *range(first, size, self.piece_bytes)):
                reader(memoryview(frame)[start : start + self.piece_bytes if start else first])

    def answer(self, response: Any, version: int, *, latency_ms: float = 3) -> int:
        """Pass a response; return the length of its frame."""
        key = response.API_KEY
        flexible = version in response.FLEXIBLE and key != API_VERSIONS_KEY
        frame = bytes(4) + (b"\0" if flexible else b"") + encode(response, version)
        self.outstanding.remove(key)
        latency_ns = round(latency_ms * 1_000_000)
        self.observer.responses(key, 1, len(frame) + 4, latency_ns)
        self.observer.outcome(key, version, len(frame), b"x" + frame + b"next", 1)
        return len(frame) + 4

    def exchange(self, request: Any, response: Any, version: int, *, latency_ms: float = 3) -> None:
        """Pass a request and its response."""
        self.send(request, version)
        self.answer(response, version, latency_ms=latency_ms)

    def close(self, by: CloseCause = "client", *, in_order: bool = True) -> None:
        self.observer.closed(by, self.outstanding, in_order)


def values(points: Iterable[DataPoint], name: str) -> dict[tuple[str, ...], float]:
    """The values of a metric by the values of its attributes, in the order of their names."""
    found = {}
    for point in points:
        if point.metric == name:
            attributes = tuple(str(point.attributes[key]) for key in sorted(point.attributes))
            assert attributes not in found, (name, attributes)
            found[attributes] = point.value
    return found


def value(points: Iterable[DataPoint], name: str) -> float:
    """The value of a metric that has one data point."""
    (only,) = values(points, name).values()
    return only


def totals(points: Iterable[DataPoint], name: str) -> float:
    """The sum of all data points of a metric."""
    return sum(point.value for point in points if point.metric == name)
