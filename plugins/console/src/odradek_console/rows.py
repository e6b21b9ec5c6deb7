"""Immutable rows of clients, for pages and commands. Any thread may read them."""

from __future__ import annotations

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
    source: str
    """The plugin that brought its pushes to the host; empty if the client pushed there."""
    first_ms: int
    last_ms: int
    interval_ms: int
    subscription_id: int
    pushes: int
    gaps: int
    refused: int
    last_error: str
    payload_bytes: int
    series: int
    findings: tuple[str, ...]
    """Ids of its findings."""
    notes: tuple[str, ...]
    """Ids of what is worth knowing, but no trouble."""
    causes: tuple[str, ...]
    """What explains further findings, in words: most clients of a broker or a group have them."""
    troubles: tuple[TroubleRow, ...]
    """All findings, also those that a cause explains."""
    brokers: tuple[str, ...]
    """The node ids of the brokers that it talks to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(JsonRow):
    """One of the few values of a client that matter most."""

    id: str
    """``rate``, ``latency``, ``idle`` or ``lag``."""
    unit: str
    value: float
    points: tuple[float, ...]
    """Its latest values, the newest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresRow(JsonRow):
    """A client instance with its figures, by id."""

    row: ClientRow
    figures: dict[str, Figure]


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
