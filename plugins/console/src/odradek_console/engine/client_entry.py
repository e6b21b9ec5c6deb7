"""One client instance, as its connection, its pushes and its Resource describe it."""

from __future__ import annotations

from array import array
from collections import deque
from enum import StrEnum
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.findings.app_name import app_name
from odradek.findings.troubles import LOSS_ENDS_S
from odradek.otlp import NotOtlp, body_start, merged_resources
from odradek.plugin import TelemetryRecord
from odradek.temporality.clients import silence_ms
from odradek.temporality.engine import LONGEST_INTERVAL_MS
from odradek.topic import record_key
from odradek_console.engine.heard import Heard
from odradek_console.engine.texts import cut

MAX_LABELS: Final = 64
EMPTY_BYTES: Final = 1_800
"""Approximate memory without labels."""
LATEST_CONNECTIONS: Final = 8
LATEST_PUSHES: Final = 20
"""Positions of pushes that are kept, so that they can be read again."""
TOO_LARGE: Final = 118
"""TELEMETRY_TOO_LARGE"""
OTHER_SUBSCRIPTION: Final = 117
"""UNKNOWN_SUBSCRIPTION_ID: how a client learns that its subscription has changed, and no refusal."""
REFUSALS: Final = {
    87: "INVALID_RECORD",
    89: "THROTTLING_QUOTA_EXCEEDED",
    118: "TELEMETRY_TOO_LARGE",
}
LATE: Final = 1.75
"""Push intervals without a push that are a gap: a client waits for at most 1.5 of them."""
LATE_AFTER_CHANGE: Final = 2.75
"""The same after a change of its subscriptions: it waits for another one after the refused push."""
NEVER_MS: Final = 1 << 62
GONE_MS: Final = 3_600_000
"""A client that was silent for this long is gone."""


class State(StrEnum):
    """The state of a client: it pushes, is silent, or is gone."""

    LIVE = "live"
    SILENT = "silent"
    """It stopped without a goodbye."""
    GONE = "gone"
    """It said goodbye, or was silent for an hour."""


class Connected(NamedTuple):
    """A connection that pushes came from."""

    since_ms: int
    address: str
    port: int
    node_id: int
    cluster_id: str


class Places(NamedTuple):
    """The positions of the latest pushes of a client in the telemetry topic."""

    topic_id: str
    partition: int
    offsets: array[int]
    """The newest last."""


class ClientEntry:
    """The facts about a client instance."""

    __slots__ = (
        "away_ms",
        "client_id",
        "connections",
        "empty",
        "first_ms",
        "gap_ms",
        "gaps",
        "heard",
        "held_bytes",
        "instance_id",
        "interval_ms",
        "is_checked",
        "key",
        "labels",
        "largest_bytes",
        "last_bytes",
        "last_error",
        "last_error_ms",
        "last_ms",
        "listener",
        "observed",
        "oversize",
        "payload_bytes",
        "places",
        "principal",
        "pushes",
        "refused",
        "resource_hash",
        "skew_ms",
        "software",
        "source",
        "subscription_id",
        "terminated",
        "version",
    )

    def __init__(self, record: TelemetryRecord) -> None:
        self.instance_id = record.payload.client_instance_id
        self.key = record_key(self.instance_id).decode()
        """The client instance id as Kafka prints it."""
        self.first_ms = self.last_ms = record.context.received_ms
        self.pushes = self.empty = self.gaps = self.gap_ms = self.refused = self.oversize = 0
        self.payload_bytes = self.last_bytes = self.largest_bytes = self.last_error = self.last_error_ms = 0
        self.connections: deque[Connected] = deque(maxlen=LATEST_CONNECTIONS)
        self.labels: tuple[tuple[str, str], ...] = ()
        self.resource_hash = 0
        self.held_bytes = EMPTY_BYTES
        """Approximate memory."""
        self.skew_ms = 0
        self.places = Places("", -1, array("q"))
        self.is_checked = False
        """Whether its findings are those of its last push."""
        self.heard: Heard | None = None
        """The place where it pushed last."""
        self.away_ms = 0
        """The time in which nobody was heard there, up to its last push."""
        self.describe(record)

    def describe(self, record: TelemetryRecord) -> None:
        """Take the facts that each record has."""
        connection = record.context.connection
        self.client_id = cut(record.context.client_id or "")
        self.software = cut(connection.client_software_name)
        self.version = cut(connection.client_software_version)
        self.principal = cut(connection.principal)
        self.listener = cut(connection.listener_name)
        self.interval_ms = min(max(record.push_interval_ms, 0), LONGEST_INTERVAL_MS)
        self.subscription_id = record.subscription_id
        self.observed = record.observed
        self.source = cut(record.source or "")
        self.terminated = record.payload.terminating

    def add(self, record: TelemetryRecord) -> None:
        now_ms, size = record.context.received_ms, len(record.payload.data)
        waited_ms = now_ms - self.last_ms
        late = LATE if record.subscription_id == self.subscription_id else LATE_AFTER_CHANGE
        if self.pushes and self.interval_ms and not self.terminated and waited_ms > late * self.interval_ms:
            self.gaps += 1
            self.gap_ms += waited_ms - self.interval_ms
        self.pushes += 1
        self.empty += not size
        self.payload_bytes += size
        self.last_bytes, self.largest_bytes = size, max(size, self.largest_bytes)
        self.first_ms, self.last_ms = min(now_ms, self.first_ms), max(now_ms, self.last_ms)
        self.refuse(record.payload.refused, now_ms)
        self.locate(record)
        if waited_ms >= 0:
            self.describe(record)
            self.connect(record)
            if size:
                self.read_labels(record.payload.data)
        self.is_checked = False

    def refuse(self, code: int, now_ms: int) -> None:
        self.oversize = self.oversize + 1 if code == TOO_LARGE else 0
        if code and code != OTHER_SUBSCRIPTION:
            self.refused += 1
            self.last_error, self.last_error_ms = code, now_ms

    def connect(self, record: TelemetryRecord) -> None:
        connection = record.context.connection
        new = Connected(
            record.context.received_ms,
            cut(connection.client_address),
            connection.client_port,
            connection.node_id,
            cut(connection.cluster_id or ""),
        )
        # An instance may push by several at a time, such as one for each cluster.
        found = next((each for each in reversed(self.connections) if each[1:] == new[1:]), new)
        if found is not new:
            self.connections.remove(found)
        self.connections.append(found)

    def locate(self, record: TelemetryRecord) -> None:
        """Remember the position of the push. Earlier ones are forgotten if it is in another partition."""
        position = record.position
        if position is None:
            return
        if self.places[:2] != position[:2]:
            self.places = Places(position.topic_id, position.partition, array("q"))
        offsets = self.places.offsets
        offsets.append(position.offset)
        if len(offsets) > LATEST_PUSHES:
            del offsets[0]

    def read_labels(self, data: bytes) -> None:
        """Read the Resource of a push if it has changed."""
        split = body_start(data)
        if split is None:
            try:
                found = merged_resources(data).resource
            except NotOtlp:
                return
            resource = found[0] if found else b""
        else:
            resource = data[split[0] : split[1]]
        known = hash(resource)
        if known == self.resource_hash:
            return
        self.resource_hash = known
        try:
            attributes = Resource.FromString(resource).attributes
        except DecodeError:
            return
        texts = [(cut(each.key), cut(each.value.string_value)) for each in attributes[:MAX_LABELS]]
        self.labels = tuple((key, text) for key, text in texts if text)
        self.held_bytes = EMPTY_BYTES + sum(len(key) + len(text) + 120 for key, text in self.labels)

    def label(self, name: str) -> str:
        """A label of its Resource; empty if there is none."""
        return next((text for key, text in self.labels if key == name), "")

    @property
    def group_id(self) -> str:
        """The consumer group; empty for other clients."""
        return self.label("group_id")

    @property
    def app(self) -> str:
        """The name of the application, which other clients may share."""
        return app_name(self.client_id, self.group_id)

    def state(self, now_ms: int) -> State:
        """Whether it pushes."""
        if self.terminated or now_ms - self.last_ms > max(GONE_MS, 4 * self.interval_ms):
            return State.GONE
        return State.SILENT if self.silent_ms(now_ms) > silence_ms(self.interval_ms) else State.LIVE

    def silent_ms(self, now_ms: int) -> int:
        """The time since its last push in which others were heard where it pushes."""
        away_ms = self.heard.away_ms(self.instance_id, self.last_ms, now_ms) if self.heard is not None else 0
        return now_ms - self.last_ms - max(0, away_ms - self.away_ms)

    def changes_ms(self, now_ms: int) -> int:
        """Until when a live client, or one that is gone, stays so without a push."""
        if self.state(now_ms) is State.GONE:
            ends_ms = self.last_ms + int(LOSS_ENDS_S * 1000)
            return ends_ms if now_ms < ends_ms else NEVER_MS
        return self.last_ms + min(silence_ms(self.interval_ms), GONE_MS)


def labels_of(attributes: bytes) -> tuple[tuple[str, str], ...]:
    """The labels of a data point in the identity of its stream."""
    found = []
    for each in KeyValueList.FromString(attributes).values:
        which = each.value.WhichOneof("value")
        if which is not None:
            found.append((cut(each.key), cut(str(getattr(each.value, which)))))
    return tuple(found)
