"""What pages and commands show of clients: immutable rows, which any thread may read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from odradek_console.engine.client_entry import State
from odradek_console.engine.client_series import Labels
from odradek_console.engine.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
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

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return found | {"state": str(self.state), "findings": list(self.findings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One of the few values of a client that matter most."""

    id: str
    """``rate``, ``latency``, ``idle`` or ``lag``."""
    unit: str
    value: float
    points: tuple[float, ...]
    """Its latest values, the newest last."""

    def to_json(self) -> dict[str, Any]:
        """The figure as JSON has it."""
        return {"id": self.id, "unit": self.unit, "value": self.value, "points": list(self.points)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresRow:
    """A client instance with its figures, by id."""

    row: ClientRow
    figures: dict[str, Figure]

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return self.row.to_json() | {"figures": [each.to_json() for each in self.figures.values()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow:
    """A connection that an instance pushed from."""

    since_ms: int
    address: str
    port: int
    node_id: int
    cluster_id: str

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
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

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return found | {"labels": dict(self.labels), "points": [list(each) for each in self.points]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDetail:
    """A client instance in full."""

    row: ClientRow
    labels: Labels
    connections: tuple[ConnectionRow, ...]
    others: tuple[ClientRow, ...]
    """Other instances of the same client id and principal, the newest first: its life before a restart."""
    findings: tuple[Finding, ...]
    series: tuple[SeriesRow, ...]
    not_reported: tuple[str, ...]
    """Metrics that findings need, and that this library does not send."""
    skew_ms: int
    gap_ms: int
    last_bytes: int
    largest_bytes: int
    last_error_ms: int

    def to_json(self) -> dict[str, Any]:
        """The client as JSON has it."""
        return self.row.to_json() | {
            "labels": dict(self.labels),
            "connections": [each.to_json() for each in self.connections],
            "others": [each.to_json() for each in self.others],
            "findings": [each.to_json() for each in self.findings],
            "series": [each.to_json() for each in self.series],
            "not_reported": list(self.not_reported),
            "skew_ms": self.skew_ms,
            "gap_ms": self.gap_ms,
            "last_bytes": self.last_bytes,
            "largest_bytes": self.largest_bytes,
            "last_error_ms": self.last_error_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How far the topic has been read."""

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

    def to_json(self) -> dict[str, Any]:
        """The state as JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
