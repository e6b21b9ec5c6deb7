"""Metrics about the clients themselves: who they are, and when they pushed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from odradek_prometheus.client_series import ClientSeries, MappedSeries
from odradek_prometheus.families import Family, FamilyType, help_of
from odradek_prometheus.label_values import Labels
from odradek_prometheus.metric_names import unit_of

INFO: Final = "kafka_client_info"
Value = Callable[[ClientSeries, int], float]


def family(name: str, unit: str = "") -> Family:
    return Family(name, name, FamilyType.GAUGE, unit_of(name, unit), help_of(name))


FACTS: Final[dict[Family, Value]] = {
    family(INFO): lambda client, now_ms: 1.0,
    family("odradek_client_last_push_age_seconds", "s"): lambda client, now_ms: (
        max(0, now_ms - client.received_ms) / 1000
    ),
    family("odradek_client_push_interval_seconds", "s"): lambda client, now_ms: client.interval_ms / 1000,
    family("odradek_client_terminated"): lambda client, now_ms: float(client.terminated),
}
"""The value of each at a time. They have no prefix: dashboards and alerts know their names."""


def fact_labels(fact: Family, client: ClientSeries) -> Labels:
    """The labels of a client's series of these families: only the first has everything."""
    return client.info if fact.name == INFO else client.labels


def client_facts(client: ClientSeries, now_ms: int) -> list[MappedSeries]:
    """The series about a client, at a time in epoch milliseconds."""
    return [
        MappedSeries(fact, fact_labels(fact, client), value(client, now_ms), 0, now_ms * 1_000_000, None)
        for fact, value in FACTS.items()
    ]
