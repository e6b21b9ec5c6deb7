"""Recordings of real clients, one file per client and one line per exchange.

``contrib/capture/pushes.py`` writes them. The first line lists the connections. Each further line is a
handshake or a push with its compressed payload as the client sent it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.testing.conformance import Exchange, Handshake, Observation, Pushed
from odradek.wire.compression import decompress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.uuid_text import parse_uuid, uuid_text

SUFFIX = ".jsonl"
MAX_BYTES = 1 << 20
GET, PUSH = 71, 72


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPush:
    """An accepted push of a real client."""

    client: str
    """``java-producer``, ``librdkafka-consumer`` ...: one of `recorded_clients` or of `otlp_senders`."""
    record: TelemetryRecord
    """Context and payload as a forwarder receives them, decompressed but without the host's labels."""
    sent: bytes = field(repr=False)
    """The payload as the client sent it."""

    @property
    def software(self) -> tuple[str, str]:
        """Name and version of the library: ``("apache-kafka-java", "4.3.1")``."""
        connection = self.context.connection
        return connection.client_software_name, connection.client_software_version

    @property
    def context(self) -> RequestContext:
        return self.record.context

    @property
    def payload(self) -> ClientTelemetryPayload:
        return self.record.payload

    @property
    def data(self) -> bytes:
        """A serialized ``MetricsData``."""
        return self.record.payload.data


def folder() -> Any:
    return files("odradek.testing.pushes") / "data"


def recorded_clients() -> list[str]:
    """The names of the recorded clients, sorted."""
    return sorted(each.name.removesuffix(SUFFIX) for each in folder().iterdir() if each.name.endswith(SUFFIX))


def refuse_unknown(name: str, names: list[str]) -> None:
    """Refuse a name that no recording has.

    Raises:
        ValueError: It is none of the names.
    """
    if name not in names:
        raise ValueError(f"no recording of {name!r}: expected one of {', '.join(names)}")


def recorded(client: str | None = None) -> list[RecordedPush]:
    """The accepted pushes of a client, in their order; None for those of all clients.

    Raises:
        ValueError: There is no recording of this client.
    """
    clients = recorded_clients()
    if client is None:
        return [push for each in clients for push in recorded(each)]
    refuse_unknown(client, clients)
    interval_ms, found = 0, []
    for each, sent in read(client):
        if isinstance(each, Handshake):
            interval_ms = each.response.push_interval_ms or interval_ms
        elif each.error is ErrorCode.NONE and each.data:
            payload = ClientTelemetryPayload(each.client_instance_id, each.terminating, each.data)
            record = TelemetryRecord(each.context, interval_ms, payload, each.subscription_id, each.codec)
            found.append(RecordedPush(client=client, record=record, sent=sent))
    return found


def observation(client: str) -> Observation:
    """All exchanges of a recorded client, for a conformance report."""
    return Observation(exchanges=[each for each, _ in read(client)], until_ms=header(client)["until_ms"])


@cache
def lines(client: str) -> list[dict[str, Any]]:
    text = (folder() / f"{client}{SUFFIX}").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def header(client: str) -> dict[str, Any]:
    return lines(client)[0]


def read(client: str) -> Iterable[tuple[Exchange, bytes]]:
    """Each exchange with the payload as it was sent; empty for a handshake."""
    connections = [ConnectionContext(**row) for row in header(client)["connections"]]
    return [exchange(row, connections) for row in lines(client)[1:]]


def exchange(row: Mapping[str, Any], connections: list[ConnectionContext]) -> tuple[Exchange, bytes]:
    """Parse one line into an exchange and its payload as sent."""
    is_push = row["api"] == "PushTelemetry"
    context = RequestContext(
        connection=connections[row["connection"]],
        api_key=PUSH if is_push else GET,
        api_version=0,
        correlation_id=row["correlation_id"],
        client_id=row["client_id"],
        received_ms=row["received_ms"],
    )
    error = None if row["error"] is None else ErrorCode[row["error"]]
    instance_id = parse_uuid(row["client_instance_id"])
    if not is_push:
        response = {**row["response"], "client_instance_id": parse_uuid(row["given_id"])}
        answer = GetTelemetrySubscriptionsResponse(**response)
        return Handshake(context=context, asked_id=instance_id, error=error, response=answer), b""
    sent = b64decode(row["metrics"])
    push = Pushed(
        context=context,
        client_instance_id=instance_id,
        subscription_id=row["subscription_id"],
        terminating=row["terminating"],
        codec=row["codec"],
        sent_bytes=row["sent_bytes"],
        error=error,
        data=decompress(row["codec"], sent, MAX_BYTES) if sent else b"",
    )
    return push, sent


def written(exchanges: Iterable[tuple[Exchange, bytes]], until_ms: int) -> str:
    """Format a recording as text.

    Args:
        exchanges: The exchanges in their order, each with its payload as sent.
        until_ms: The end of the observation, epoch milliseconds.
    """
    connections: list[ConnectionContext] = []
    rows = [line(each, sent, connections) for each, sent in exchanges]
    first = {"until_ms": until_ms, "connections": [asdict(connection) for connection in connections]}
    return "".join(json.dumps(row) + "\n" for row in [first, *rows])


def line(each: Exchange, sent: bytes, connections: list[ConnectionContext]) -> dict[str, Any]:
    """Format one exchange, and add its connection to ``connections`` if it is new."""
    context = each.context
    if context.connection not in connections:
        connections.append(context.connection)
    row: dict[str, Any] = {
        "api": "PushTelemetry" if isinstance(each, Pushed) else "GetTelemetrySubscriptions",
        "connection": connections.index(context.connection),
        "client_id": context.client_id,
        "correlation_id": context.correlation_id,
        "received_ms": context.received_ms,
        "error": None if each.error is None else each.error.name,
    }
    if isinstance(each, Handshake):
        response = asdict(each.response)
        given_id = response.pop("client_instance_id")
        ids = {"client_instance_id": uuid_text(each.asked_id), "given_id": uuid_text(given_id)}
        return row | ids | {"response": response}
    return row | {
        "client_instance_id": uuid_text(each.client_instance_id),
        "subscription_id": each.subscription_id,
        "terminating": each.terminating,
        "codec": each.codec,
        "sent_bytes": each.sent_bytes,
        "metrics": b64encode(sent if each.error is ErrorCode.NONE else b"").decode(),
    }
