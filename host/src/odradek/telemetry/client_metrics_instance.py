"""One client instance as the broker remembers it; after Kafka's ClientMetricsInstance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.otlp.push_bytes import body_start
from odradek.telemetry.client_labels import ClientLabels
from odradek.telemetry.client_metrics_stats import InstanceStats
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata
from odradek.telemetry.subscription_id import subscription_id
from odradek.telemetry.subscriptions import SubscriptionPlan
from odradek.waiting.clock import TimerTask
from odradek.wire.error_code import ErrorCode

NEVER_MS = -(2**63)
"""Before every moment of the monotonic clock, which may start from 0 when the machine does."""

MAX_RESOURCE_BYTES = 4_096
MAX_LABELED_CONNECTIONS = 8
"""Connections of one instance whose labels are remembered. A client has one or two."""


@dataclass(slots=True, eq=False)
class ClientMetricsInstance:
    """A client under one version of its subscription.

    A change of the subscriptions replaces the object by a new one, with its gates wide open. ``metadata``,
    ``stats`` and ``labels`` are kept.
    """

    metadata: ClientMetricsInstanceMetadata
    plan: SubscriptionPlan
    subscription_version: int
    stats: InstanceStats
    push_interval_ms: int
    subscription_id: int
    last_get_ms: int = NEVER_MS
    """On the monotonic clock, as the next one."""
    last_push_ms: int = NEVER_MS
    terminating: bool = False
    """From the last push."""
    has_left: bool = False
    """Its terminating push is stored: a client may close before that, and then it is lost with the answer."""
    last_known_error: ErrorCode = ErrorCode.NONE
    expiry: TimerTask | None = None
    last_connection_id: str = ""
    """The connection of the last request; expiry forgets it."""
    labels: ClientLabels | None = None
    """The labels of the connection below."""
    labels_connection_id: str | None = None
    """None until the first push."""
    other_labels: dict[str, ClientLabels] | None = None
    """Labels by connection, for the rare client that has several."""
    resource: bytes = b""
    """The Resource of the last push, serialized and with its labels."""
    on_expiry: Callable[[ClientMetricsInstance], None] | None = None

    @property
    def client_instance_id(self) -> bytes:
        """Sixteen raw bytes."""
        return self.metadata.client_instance_id

    def maybe_update_get(self, now_ms: int) -> bool:
        """Whether a Get is due: an interval after the last request of either kind. If it is due, it starts a
        new interval.
        """
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.push_interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def maybe_update_push(self, now_ms: int) -> bool:
        """Whether a push is due: the first one after a Get, or an interval after the last one. If it is due,
        it starts a new interval.
        """
        if self.last_get_ms <= self.last_push_ms and now_ms - self.last_push_ms < self.push_interval_ms:
            return False
        self.last_push_ms = now_ms
        return True

    def keep_resource(self, data: bytes) -> None:
        """Keep the Resource of a push, unless it is unusually long, or the push is not OTLP."""
        try:
            found = body_start(data)
        except NotOtlp:
            found = None
        if found is not None:
            # The body begins where the Resource ends.
            resource = data[slice(*found)]
            if resource != self.resource and len(resource) <= MAX_RESOURCE_BYTES:
                self.resource = resource

    def labels_on(self, connection_id: str) -> ClientLabels | None:
        """The enrichers' labels for a connection; None if they are not remembered."""
        if connection_id == self.labels_connection_id:
            return self.labels
        return None if self.other_labels is None else self.other_labels.get(connection_id)

    def remember_labels(self, connection_id: str, labels: ClientLabels) -> None:
        """Remember the enrichers' labels for a connection."""
        if self.labels_connection_id is None:
            self.labels_connection_id, self.labels = connection_id, labels
            return
        if self.other_labels is None or len(self.other_labels) >= MAX_LABELED_CONNECTIONS:
            self.other_labels = {}
        self.other_labels[connection_id] = labels

    def inherit_labels(self, outdated: ClientMetricsInstance) -> None:
        """Take over the labels and the Resource of the object that this one replaces."""
        self.labels_connection_id, self.labels = outdated.labels_connection_id, outdated.labels
        self.other_labels, self.resource = outdated.other_labels, outdated.resource

    def drop_labels(self) -> None:
        """Forget all labels."""
        self.labels_connection_id = self.labels = self.other_labels = None

    def expire(self) -> None:
        """The timer's action: a bound method needs the least memory."""
        self.expiry = None
        if self.on_expiry is not None:
            self.on_expiry(self)


def new_instance(
    metadata: ClientMetricsInstanceMetadata, plan: SubscriptionPlan, version: int, stats: InstanceStats
) -> ClientMetricsInstance:
    """A new instance, before its first request."""
    return ClientMetricsInstance(
        metadata=metadata,
        plan=plan,
        subscription_version=version,
        stats=stats,
        push_interval_ms=plan.push_interval_ms,
        subscription_id=subscription_id(plan.checksum, metadata.client_instance_id),
    )
