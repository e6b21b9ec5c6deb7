"""The telemetry requests of a client and the host's responses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from odradek.plugin.context import RequestContext
from odradek.plugin.protocols import TelemetryRecord
from odradek.testing.data_points import DataPoint, data_points
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.types import NIL_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """One GetTelemetrySubscriptions request and its response."""

    context: RequestContext
    asked_id: bytes
    """The client instance id in the request; nil if the client has none yet."""
    error: ErrorCode | None
    """None if the connection was dropped."""
    response: GetTelemetrySubscriptionsResponse = field(repr=False)

    @property
    def client_instance_id(self) -> bytes:
        """The id of the client instance after this handshake."""
        return self.response.client_instance_id if self.error is ErrorCode.NONE else self.asked_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """One PushTelemetry request and its response."""

    context: RequestContext
    client_instance_id: bytes
    subscription_id: int
    push_interval_ms: int | None = None
    """The interval that the client instance was given; None if only the handshake before it has it."""
    terminating: bool = False
    codec: int = 0
    """Kafka's number of the compression codec."""
    sent_bytes: int | None = None
    """Size of the payload as sent; None if it is not known."""
    error: ErrorCode | None = ErrorCode.NONE
    """None if the connection was dropped."""
    data: bytes = field(default=b"", repr=False)
    """The decompressed payload; empty if the push was empty or not stored."""

    def points(self) -> list[DataPoint]:
        """The data points of the payload; empty if it is not OTLP."""
        try:
            return list(data_points(self.data))
        except DecodeError:
            return []


Exchange = Handshake | Pushed


def received_ms(exchange: Exchange) -> int:
    """The time when the host read the request, epoch milliseconds."""
    return exchange.context.received_ms


def from_record(record: TelemetryRecord) -> Pushed:
    """Convert a record of the telemetry topic, which is an accepted push."""
    return Pushed(
        context=record.context,
        client_instance_id=record.payload.client_instance_id,
        subscription_id=record.subscription_id,
        push_interval_ms=record.push_interval_ms,
        terminating=record.payload.terminating,
        codec=record.codec,
        data=record.payload.data,
    )


@dataclass(slots=True)
class ClientInstance:
    """The exchanges of one client instance, in their order."""

    client_instance_id: bytes
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def handshakes(self) -> list[Handshake]:
        return [each for each in self.exchanges if isinstance(each, Handshake)]

    @property
    def pushes(self) -> list[Pushed]:
        return [each for each in self.exchanges if isinstance(each, Pushed)]

    @property
    def accepted(self) -> list[Pushed]:
        return [push for push in self.pushes if push.error is ErrorCode.NONE]

    def handshake_before(self, index: int) -> Handshake | None:
        """The last successful handshake before an exchange, which the client must follow; None if unseen."""
        for each in reversed(self.exchanges[:index]):
            if isinstance(each, Handshake) and each.error is ErrorCode.NONE:
                return each
        return None

    def interval_ms(self, index: int) -> int | None:
        """The push interval in force for a push; None if it is not known."""
        push = self.exchanges[index]
        if isinstance(push, Pushed) and push.push_interval_ms is not None:
            return push.push_interval_ms
        handshake = self.handshake_before(index)
        return None if handshake is None else handshake.response.push_interval_ms


def client_instances(exchanges: Iterable[Exchange]) -> list[ClientInstance]:
    """Group exchanges by client instance, in order of appearance.

    A handshake that failed before the client had an id is added to the instance that follows.
    """
    found: dict[bytes, ClientInstance] = {}
    unnamed: list[Exchange] = []
    for each in exchanges:
        client_instance_id = each.client_instance_id
        if client_instance_id == NIL_UUID and isinstance(each, Handshake):
            unnamed.append(each)
            continue
        instance = found.setdefault(client_instance_id, ClientInstance(client_instance_id))
        instance.exchanges += [*unnamed, each]
        unnamed.clear()
    return list(found.values())
