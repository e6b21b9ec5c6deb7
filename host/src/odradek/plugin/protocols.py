"""What a plugin can be. No base class: an object that has the methods is one.

Guarantees of the host, for every kind:

1. Objects are made once per host, before the first connection. What a hook returned and has a method
   ``close`` is closed once, when the host stops.
2. What a plugin raises is logged, counted and named; the client is answered and the other plugins get the
   push.
3. `ClientTelemetryReceiver`, `ClientTelemetryExporter` and `Enricher` are called on the host's event loop,
   one call at a time: they may not block. What takes longer than ``plugin.slow.ms`` is counted and named.
4. A `Forwarder` lives on an event loop and a thread of its own, so whatever it does holds up nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.plugin.context import ClientTelemetryContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload


@runtime_checkable
class ClientTelemetryReceiver(Protocol):
    """Sees every accepted push (KIP-714)."""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Take one push. Not called for a push without metrics."""


@runtime_checkable
class ClientTelemetry(Protocol):
    """Offers a receiver (KIP-714)."""

    def client_receiver(self) -> ClientTelemetryReceiver | None:
        """The receiver, or None to stay out."""


@runtime_checkable
class ClientTelemetryExporter(Protocol):
    """Sees every accepted push, with the interval the client keeps (KIP-1217)."""

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Take one push. Not called for a push without metrics."""


@runtime_checkable
class ClientTelemetryExporterProvider(Protocol):
    """Offers an exporter (KIP-1217). An object that is a `ClientTelemetry` too is asked for its exporter
    only.
    """

    def client_telemetry_exporter(self) -> ClientTelemetryExporter | None:
        """The exporter, or None to stay out."""


@runtime_checkable
class Enricher(Protocol):
    """Says what the host knows of a client, as labels on its metrics."""

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        """Resource attributes to set, replacing the client's own of the same name.

        Called once per client instance and connection; the answer is cached.
        """


@runtime_checkable
class ClientQuotaCallback(Protocol):
    """Decides who shares a quota and how much it is (``client.quota.callback.class`` of Kafka).

    All four types of client quota ask the same object. Called on the host's event loop: it may not block.
    Whoever has the same tags shares one budget.
    """

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        """The tags of the metric that a request counts into; asked for every request.

        Args:
            quota_type: What is measured.
            user: The name of the principal, without its type.
            client_id: As the client calls itself; may be empty.
        """

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The quota of those tags: bytes, percent of a thread or mutations per second. None is no limit."""

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        """An operator set a quota (AlterClientQuotas)."""

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        """An operator removed a quota."""

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        """Whether limits changed since the last call for this type by other means than the two above."""


@runtime_checkable
class Companion(Protocol):
    """A process beside the host, which starts it, watches it and stops it."""

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        """The program and its arguments. Called once, when the host takes connections.

        The process gets SIGTERM when the host stops, and is killed when it is not gone in time. Its standard
        input ends with the host, however that goes. When it ends by itself it is started again.

        Args:
            bootstrap_servers: The host's first listener.
        """

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """How far it is, for ``odradek plugins``. Asked elsewhere: read what this process leaves behind."""


@dataclass(slots=True, eq=False)
class TelemetryRecord:
    """One push on its way to a forwarder. One without metrics has no bytes in ``payload.data``: the client is
    there and has nothing to say.
    """

    context: RequestContext
    push_interval_ms: int
    payload: ClientTelemetryPayload
    subscription_id: int = 0
    codec: int = 0
    """Kafka's number of the compression that the client used."""


class Retry(Exception):
    """The far side cannot take the batch now.

    Args:
        reason: For the log and the metrics.
        after_s: Seconds to wait as the far side asked, or None to leave it to the host's backoff.
        delivered: Records of the batch that the far side took all the same; only the others come again.
    """

    def __init__(
        self, reason: str, after_s: float | None = None, delivered: Sequence[TelemetryRecord] = ()
    ) -> None:
        super().__init__(reason)
        self.after_s = after_s
        self.delivered = delivered


class Reject(Exception):
    """The far side will never take some of the batch.

    Args:
        reason: For the log, the metrics and the dead letters.
        records: The records to give up; empty when the far side did not say which.
        delivered: Records of the batch that the far side took all the same.
    """

    def __init__(
        self,
        reason: str,
        records: Sequence[TelemetryRecord] = (),
        delivered: Sequence[TelemetryRecord] = (),
    ) -> None:
        super().__init__(reason)
        self.records = records
        self.delivered = delivered


@runtime_checkable
class Forwarder(Protocol):
    """Carries pushes to another system, in batches."""

    async def start(self) -> None:
        """Called once on the forwarder's own loop. The far side may still be down."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Return when the far side took the whole batch.

        Raises:
            Retry: It cannot take it now.
            Reject: It will never take some of it.
        """

    async def close(self) -> None:
        """Let go of everything. Called once, on the same loop, also after a failed start."""
