"""The interfaces of plugins. There is no base class: an object that has the methods implements the protocol.

Guarantees of the host, for every kind:

1. Each hook is called once per host, before the first connection; again only to reload the table of a plugin
   whose objects are all `Reloadable`. If the returned object has a method ``close``, the host calls it once
   when it stops.
2. An exception of a plugin is logged and counted under the plugin's name. The client still gets its answer
   and the other plugins still get the push.
3. `ClientTelemetryReceiver`, `ClientTelemetryExporter` and `Enricher` are called on the host's event loop,
   one call at a time: they must not block, unless an enricher says that it does. Calls longer than
   ``plugin.slow.ms`` are counted and logged under the plugin's name; a receiver or exporter with too many
   of them gets a thread of its own.
4. A `Forwarder` runs on its own event loop and thread, so it delays nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from odradek.plugin.client_quota import ClientQuotaEntity, ClientQuotaType
from odradek.plugin.context import ClientTelemetryContext, RequestContext
from odradek.plugin.later import Later
from odradek.plugin.payload import ClientTelemetryPayload

LAG_SOURCE: Final = "lag"
"""The source of records about groups and topics."""


@runtime_checkable
class ClientTelemetryReceiver(Protocol):
    """Receives every accepted push (KIP-714)."""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Take one push. Not called for a push without metrics."""


@runtime_checkable
class ClientTelemetry(Protocol):
    """Offers a receiver (KIP-714)."""

    def client_receiver(self) -> ClientTelemetryReceiver | None:
        """The receiver, or None to stay out."""


@runtime_checkable
class ClientTelemetryExporter(Protocol):
    """Receives every accepted push, with the client's push interval (KIP-1217)."""

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        """Take one push. Not called for a push without metrics."""


@runtime_checkable
class ClientTelemetryExporterProvider(Protocol):
    """Offers an exporter (KIP-1217).

    If the object is a `ClientTelemetry` too, the host asks it for the exporter only.
    """

    def client_telemetry_exporter(self) -> ClientTelemetryExporter | None:
        """The exporter, or None to stay out."""


@runtime_checkable
class Enricher(Protocol):
    """Labels the metrics of a client with facts that the host, or another system, knows about it.

    An enricher may have two attributes: ``blocks = True`` if `labels` waits for something, so that it is
    called on threads of its own, several calls at a time; ``ttl_ms``, how long labels are good, in
    milliseconds: at the first push after that the enricher is asked again. It may be `Invalidates`, too.

    A push waits for late labels no longer than ``plugin.labels.wait.ms``. Then it goes on with the labels
    that are known, and with the label ``labels_missing``, which names the plugins whose labels are missing.
    """

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str] | Later:
        """The Resource attributes to set; they replace the client's own attributes of the same names.

        Called once per client instance and connection; the host remembers the labels. It asks again after an
        exception, at the first push after ten seconds. Called once more when the host starts, for a sample
        client, to check the types, unless the enricher blocks.
        """


@runtime_checkable
class ClientQuotaCallback(Protocol):
    """Decides which clients share a quota, and its limit (Kafka's ``client.quota.callback.class``).

    All four types of client quota ask the same object. It is called on the host's event loop: it must not
    block. Requests with equal tags share one quota.
    """

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        """The tags of the metric that a request is charged to; called for every request.

        Args:
            quota_type: The resource that the request consumes.
            user: The name of the principal, without its type.
            client_id: The client id; may be empty.
        """

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The quota of these tags in bytes per second, percent of a thread or mutations per second.

        None is no limit.
        """

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        """Called when an operator set a quota (AlterClientQuotas)."""

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        """Called when an operator removed a quota."""

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        """Whether limits of this type changed since the last call, other than by the two methods above."""


@runtime_checkable
class Companion(Protocol):
    """A process that the host starts, supervises and stops."""

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        """The program and its arguments. Called once, when the host accepts connections.

        The process gets SIGTERM when the host stops, and is killed if it has not exited in time. Its standard
        input reaches end of file when the host ends, even if the host is killed. A process that exits by
        itself is started again.

        Args:
            bootstrap_servers: The first listener with the security protocol that the companion's attribute
                ``security_protocol`` names, or without that attribute the first one with PLAINTEXT. If there
                is none, the host's first listener. TLS and logins need settings of the plugin.
        """

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """The progress of the process, for ``odradek plugins``.

        Called in another process than the host's, so read it from files or tables that the companion writes.
        """


@runtime_checkable
class Reloadable(Protocol):
    """An object of a hook that can take a new table while the host runs, in addition to its other methods.

    On SIGHUP the host calls the plugin's hooks again with the changed table and checks the answers as at the
    start. If all objects of the plugin are reloadable, each is given its replacement; the replacement is then
    forgotten, neither used nor closed.
    """

    def reload(self, replacement: Any) -> None:
        """Take the settings of an object of the same class.

        Called on the host's event loop, also for a forwarder, whose other methods run on its own thread. Must
        not block. If it raises, the host asks the operator for a restart.
        """


class Origin(NamedTuple):
    """The position at which the first host stored a record. Every copy of the record has the same."""

    topic_id: str
    """Id of the telemetry topic of that host, as Kafka prints it."""
    partition: int
    offset: int


@dataclass(slots=True, eq=False)
class TelemetryRecord:
    """One push on its way to a forwarder, or from a source.

    ``payload.data`` is empty if the client is alive but pushed no metrics.
    """

    context: RequestContext
    push_interval_ms: int
    payload: ClientTelemetryPayload
    subscription_id: int = 0
    codec: int = 0
    """Kafka's number of the compression that the client used."""
    observed: bool = False
    """The client pushed nothing: the host derived the metrics from the client's requests."""
    labeled: bool = True
    """A host has set its labels."""
    source: str | None = None
    """The plugin that brought the record to its first host; None if a client pushed it there."""
    origin: Origin | None = None
    """None if no host has stored the record yet."""
    position: Origin | None = None
    """The position in the log that the record was read from, to recognize it when it is delivered again. None
    if it was not read from a log."""

    @property
    def is_of_client(self) -> bool:
        """Whether it is about a client: it counts and is shown as one. A group or a topic is none."""
        return self.source != LAG_SOURCE


class Retry(Exception):
    """The destination cannot accept the batch now.

    Args:
        reason: For the log and the metrics.
        after_s: Seconds to wait, as the destination asked; None leaves the wait to the host's backoff.
        delivered: Records of the batch that the destination accepted; only the others are delivered again.
    """

    def __init__(
        self, reason: str, after_s: float | None = None, delivered: Sequence[TelemetryRecord] = ()
    ) -> None:
        super().__init__(reason)
        self.after_s = after_s
        self.delivered = delivered


class Reject(Exception):
    """The destination will never accept some records of the batch.

    Args:
        reason: For the log, the metrics and the dead letters.
        records: The records to give up; empty if the destination did not say which.
        delivered: Records of the batch that the destination accepted.
    """

    def __init__(
        self, reason: str, records: Sequence[TelemetryRecord] = (), delivered: Sequence[TelemetryRecord] = ()
    ) -> None:
        super().__init__(reason)
        self.records = records
        self.delivered = delivered


@runtime_checkable
class Forwarder(Protocol):
    """Delivers pushes to another system, in batches."""

    async def start(self) -> None:
        """Called once on the forwarder's own loop. The destination may still be down."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Deliver a batch. Return once the destination has accepted all of it.

        Raises:
            Retry: The destination cannot accept the batch now.
            Reject: The destination will never accept some records of the batch.
        """

    async def close(self) -> None:
        """Release all resources. Called once, on the same loop, also after a failed start."""


@runtime_checkable
class CountsRefusedPoints(Protocol):
    """A forwarder whose destination tells how many data points of accepted pushes it did not store."""

    refused_points: Mapping[str, int]
    """How many, by reason, since the forwarder was made; for a metric. Any thread may read it."""


@runtime_checkable
class RenamesLabels(Protocol):
    """A forwarder that renames labels which have the name of an attribute of a data point."""

    renamed_points: int | None
    """The number of these data points since the forwarder was made, for a metric; None if it does not rename.
    Any thread may read it.
    """


@runtime_checkable
class Listens(Protocol):
    """A forwarder or a source that listens on an address of its own.

    A program is ready once it listens there, or could not. Several workers of a gateway cannot share the
    address of a forwarder.
    """

    listens: str | None
    """The address, ``HOST:PORT``; None if it does not listen."""
