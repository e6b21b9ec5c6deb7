"""A broker without a network: the fixture of Kafka's ClientMetricsManagerTest.

A push has at most 100 bytes. Instances expire after 100 ms or three intervals, whichever is longer. Each
request uses a connection of its own unless one is named.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.broker.answering import TelemetrySink
from odradek.broker.handlers.push_telemetry import Answer, keep
from odradek.plugin import ClientTelemetryPayload, RequestContext, TelemetryRecord
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.goodbyes import Goodbyes, Place
from odradek.telemetry.payload import PayloadWork
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.testing import request_context
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred, offload_inline
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import uuid_text

PREFIXES = (
    "org.apache.kafka.client.producer.partition.queue.",
    "org.apache.kafka.client.producer.partition.latency",
)
DEFAULT_PROPERTIES = {
    "metrics": ",".join(PREFIXES),
    "interval.ms": "30000",
    "match": "client_software_name=apache-kafka-java,client_software_version=3.5.*",
}
HOST_METRICS = 3
"""Metrics that exist without any instance."""
METRICS_PER_INSTANCE = 8


def metrics_with(instances: int) -> int:
    """The number of the broker's metrics with this many instances."""
    return HOST_METRICS + instances * METRICS_PER_INSTANCE


def otlp(*names: str) -> bytes:
    """Serialized MetricsData with one gauge of each name."""
    data = MetricsData()
    scope = data.resource_metrics.add().scope_metrics.add()
    for name in names:
        scope.metrics.add(name=name).gauge.data_points.add(as_int=7, time_unix_nano=1)
    return data.SerializeToString()


DATA = otlp("m")


class Recorder:
    """A receiver that stores every payload."""

    def __init__(self) -> None:
        self.payloads: list[ClientTelemetryPayload] = []

    def export_metrics(self, context: object, payload: ClientTelemetryPayload) -> None:
        self.payloads.append(payload)


class Broken:
    """A receiver that raises."""

    def export_metrics(self, context: object, payload: ClientTelemetryPayload) -> None:
        raise RuntimeError("test exception")


class TelemetryBroker:
    """A broker and the clients that talk to it."""

    def __init__(
        self,
        policy: ErrorPolicy = ErrorPolicy.CLIENT_SAFE,
        *,
        telemetry_max_bytes: int = 100,
        max_decompressed_bytes: int = 16 * 1024 * 1024,
        inline_bytes: int = 65_536,
        cache_size: int = 16_384,
        narrow_too_large: bool = True,
        delta_temporality: bool = True,
        keep_byte_rate: int = 0,
        keep_unknown_subscription: bool = True,
        random_uuid: Callable[[], bytes] | None = None,
    ) -> None:
        self.clock = MockClock()
        self.plugin = ClientMetricsReceiverPlugin(self.clock)
        self.enrichers = Enrichers(self.clock, self.clock.timer)
        self.receiver = Recorder()
        self.plugin.add_receiver("recorder", self.receiver)
        self.config = TelemetryConfig(
            telemetry_max_bytes=telemetry_max_bytes,
            max_decompressed_bytes=max_decompressed_bytes,
            error_policy=policy,
            cache_expiry_ms=100,
            cache_size=cache_size,
            inline_bytes=inline_bytes,
            narrow_too_large=narrow_too_large,
            delta_temporality=delta_temporality,
            keep_byte_rate=keep_byte_rate,
            keep_unknown_subscription=keep_unknown_subscription,
        )
        self.goodbyes: list[TelemetryRecord] = []
        """Last records of clients that left without a word."""
        self.lost: list[tuple[bytes, str]] = []
        """Clients that were told to be lost, and why."""
        self.members = Counter[Place]()
        """Of groups."""
        chance = random.Random(714)
        self.manager = ClientMetricsManager(
            self.config,
            self.clock,
            self.clock.timer,
            random_uuid or (lambda: chance.randbytes(16)),
            self.plugin,
            self.enrichers,
            lambda work, done: self.offloaded.append((work, done)),
            Goodbyes(
                self.goodbyes.append,
                lambda: self.members,
                self.clock,
                self.clock.timer,
                lambda seen, why: self.lost.append((seen.instance_id, why)),
            ),
        )
        self.sink: TelemetrySink | None = None
        self.offloaded: list[tuple[PayloadWork, Callable[[bytes | Exception], None]]] = []
        """Payloads that wait for a worker."""
        self.serials = count()

    def context(self, connection_id: str | None = None) -> RequestContext:
        """The request context of a Java producer."""
        return request_context(
            connection_id=connection_id or f"random-{next(self.serials)}",
            client_port=56078,
            client_software_name="apache-kafka-java",
            client_software_version="3.5.2",
            correlation_id=next(self.serials),
            client_id="producer-1",
            received_ms=self.clock.now_ms(),
        )

    def update(self, name: str, properties: Mapping[str, str]) -> None:
        self.manager.update_subscription(name, properties)

    def get(
        self, client_instance_id: bytes = NIL_UUID, connection_id: str | None = None
    ) -> GetTelemetrySubscriptionsResponse:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id)
        return self.manager.get_telemetry_subscriptions(request, self.context(connection_id))

    def push(
        self,
        told: GetTelemetrySubscriptionsResponse,
        metrics: bytes = DATA,
        *,
        subscription_id: int | None = None,
        codec: int = 0,
        terminating: bool = False,
        connection_id: str | None = None,
    ) -> ErrorCode:
        """Push with the subscription that ``told`` granted; return the error code."""
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id if subscription_id is None else subscription_id,
            terminating=terminating,
            compression_type=codec,
            metrics=metrics,
        )
        answer = self.send(request, connection_id)
        assert isinstance(answer, PushTelemetryResponse)
        return ErrorCode(answer.error_code)

    def send(self, request: PushTelemetryRequest, connection_id: str | None = None) -> Answer:
        """Answer a push as the handler does."""
        accepted = self.manager.accept(request, self.context(connection_id))
        if isinstance(accepted, Deferred):
            return accepted.then(lambda push: keep(self.manager, self.sink, push))
        return keep(self.manager, self.sink, accepted)

    def pending_push(
        self, told: GetTelemetrySubscriptionsResponse, metrics: bytes, codec: int = 0
    ) -> Deferred[PushTelemetryResponse]:
        """Push a payload that is opened by a worker."""
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id,
            compression_type=codec,
            metrics=metrics,
        )
        answer = self.send(request)
        assert isinstance(answer, Deferred)
        return answer

    def finish(
        self, pending: Deferred[PushTelemetryResponse], outcome: Exception | None = None
    ) -> PushTelemetryResponse:
        """Let the worker open the payload, or fail with ``outcome``; return the response to the push."""
        work, done = self.offloaded.pop()
        if outcome is None:
            offload_inline(work, done)
        else:
            done(outcome)
        assert isinstance(pending.outcome, PushTelemetryResponse)
        return pending.outcome

    def instance(self, told: GetTelemetrySubscriptionsResponse) -> ClientMetricsInstance | None:
        return self.manager.client_instances.cached.get(told.client_instance_id)

    def known(self, told: GetTelemetrySubscriptionsResponse) -> ClientMetricsInstance:
        """The cached instance; fails if there is none."""
        instance = self.instance(told)
        assert instance is not None
        return instance

    @property
    def connections(self) -> dict[str, bytes]:
        return self.manager.client_instances.connections

    def metric_count(self) -> int:
        return len(list(self.manager.metric_rows()))

    def metric(self, name: str, told: GetTelemetrySubscriptionsResponse | None = None) -> float:
        """A metric of the host, or of one instance if ``told`` is given, by Kafka's name."""
        full_name = f"kafka.server.client.metrics.{name}".replace("-", ".")
        attributes = {"client_instance_id": uuid_text(told.client_instance_id)} if told else {}
        (value,) = [
            row.value
            for row in self.manager.metric_rows()
            if row.name == full_name and row.attributes == attributes
        ]
        return value

    def counts(self, told: GetTelemetrySubscriptionsResponse) -> dict[str, float]:
        """The counters of one instance, and the unknown-subscription counter of the host."""
        return {
            "export": self.metric("plugin-export-count", told),
            "error": self.metric("plugin-error-count", told),
            "throttle": self.metric("throttle-count", told),
            "unknown": self.metric("unknown-subscription-request-count"),
        }

    def export_times(self, told: GetTelemetrySubscriptionsResponse) -> tuple[float, float]:
        return self.metric("plugin-export-time-avg", told), self.metric("plugin-export-time-max", told)

    def never_timed(self, told: GetTelemetrySubscriptionsResponse) -> bool:
        """Whether neither average nor maximum export time has a value yet."""
        return all(math.isnan(value) for value in self.export_times(told))


def counted(*, export: int = 0, error: int = 0, throttle: int = 0, unknown: int = 0) -> dict[str, float]:
    """The expected result of `TelemetryBroker.counts`."""
    return {"export": export, "error": error, "throttle": throttle, "unknown": unknown}
