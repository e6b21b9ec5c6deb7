"""Immutable rows of clients, for pages and commands. Any thread may read them."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from odradek_console.engine.client_entry import State
from odradek_console.engine.client_series import Labels
from odradek_console.engine.findings import Finding
from odradek_console.json_form import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleRow(JsonRow):
    """A trouble of a client, which others may have, too."""

    id: str
    since_ms: int
    broker: str
    """The node id of the broker that it is about; empty for others."""
    is_shared: bool
    """Whether it is a trouble only if most clients of the broker have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(JsonRow):
    """One of the few values of a client that matter most."""

    value: float
    unit: str
    what: str
    """Which one it is, such as ``p99``, ``max`` or ``avg`` of a latency."""
    source: str
    """Who tells it: ``pushed`` by the client, ``observed`` by a gateway or a host, ``measured`` as a lag."""
    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline(JsonRow):
    """The last hour of a figure."""

    figure: str
    unit: str
    values: tuple[float, ...]
    """Means of steps of the same length, the newest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow(JsonRow):
    """A client instance in a list."""

    client_instance_id: str
    client_id: str
    software: str
    version: str
    principal: str
    group_id: str
    app: str
    owner: str
    address: str
    node_id: int
    cluster_id: str
    gateway: str
    state: State
    observed: bool
    """Whether it pushes nothing, and only gateways or hosts tell of it."""
    sources: tuple[str, ...]
    """Who tells of it: ``pushed``, ``observed``."""
    figures: dict[str, Figure]
    """By id: ``records``, ``bytes``, ``latency``, ``lag``, ``lag_s``, ``throttled``, ``idle``."""
    source: str
    """The plugin that brought its pushes to the host; empty if the client pushed there."""
    first_ms: int
    last_ms: int
    connected_ms: int
    """When its present connection pushed first."""
    before_node: int
    """The broker that it pushed to by the connection before; -1 if there was none."""
    interval_ms: int
    subscription_id: int
    pushes: int
    gaps: int
    refused: int
    last_error: str
    payload_bytes: int
    series: int
    findings: tuple[str, ...]
    """Ids of its findings, the worst one first."""
    notes: tuple[str, ...]
    """Ids of what is worth knowing, but no trouble."""
    causes: tuple[str, ...]
    """What explains further findings, in words: most clients of a broker or a group have them."""
    troubles: tuple[TroubleRow, ...]
    """All findings, also those that a cause explains."""
    brokers: tuple[str, ...]
    """The node ids of the brokers that it talks to."""

    @property
    def told(self) -> tuple[str, ...]:
        """What explains its troubles, its findings, and its notes in brackets."""
        return (*self.causes, *self.findings, *(f"({each})" for each in self.notes))

    @property
    def instance(self) -> bytes:
        """The bytes of its instance id."""
        return instance_of(self.client_instance_id)

    def figure(self, name: str) -> float | None:
        """The value of a figure; None if nobody tells it."""
        found = self.figures.get(name)
        return found.value if found is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow(JsonRow):
    """A connection that an instance pushed from."""

    since_ms: int
    address: str
    port: int
    node_id: int
    cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow(JsonRow):
    """A series of a client."""

    metric: str
    labels: Labels
    kind: str
    """``counter`` or ``gauge``; the values of a counter are per second."""
    source: str
    """Who tells it: ``pushed``, ``observed``, or only ``tables`` that have older points."""
    unit: str
    help: str
    value: float | None
    peers: float | None
    """The median of the same among the live clients of the application; None without others."""
    points: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDetail(JsonRow):
    """A client instance in full."""

    row: ClientRow
    labels: Labels
    connections: tuple[ConnectionRow, ...]
    parts: tuple[ClientRow, ...]
    """What gateways and hosts observe of it, each with its own figures."""
    others: tuple[ClientRow, ...]
    """Other instances of the same client id and principal, the newest first: its life before a restart."""
    findings: tuple[Finding, ...]
    """Also notes, which are no trouble."""
    ended: tuple[Finding, ...]
    """Findings that were over a short time ago, the newest first."""
    series: tuple[SeriesRow, ...]
    not_reported: tuple[str, ...]
    """Metrics that findings need, and that this library does not send."""
    skew_ms: int
    gap_ms: int
    last_bytes: int
    largest_bytes: int
    last_error_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(JsonRow):
    """The progress of reading the topic."""

    topic: str
    is_caught_up: bool
    problem: str
    """Why nothing is read now; empty if all is well."""
    clients: int
    series: int
    held_bytes: int
    scale: float
    """Part of their full length that histories have."""
    counts: dict[str, int]


def instance_of(name: str) -> bytes:
    """The client instance of an id as Kafka prints it; empty for other texts."""
    try:
        return base64.b64decode(name + "==", altchars=b"-_", validate=True)
    except ValueError:
        return b""
