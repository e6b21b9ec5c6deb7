"""Metrics about the clients themselves: their facts, and the age of their last push."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from odradek_prometheus.client_series import ClientSeries, MappedSeries
from odradek_prometheus.families import Family, own_family
from odradek_prometheus.label_values import Labels
from odradek_prometheus.mapped_streams import LABELS_TOO_LONG, NAME_COLLISION, SERIES_COLLISION

INFO: Final = "kafka_client_info"
Value = Callable[[ClientSeries, int], float]


FACTS: Final[dict[Family, Value]] = {
    own_family(INFO): lambda client, now_ms: 1.0,
    own_family("odradek_client_last_push_age_seconds", "s"): lambda client, now_ms: (
        max(0, now_ms - client.received_ms) / 1000
    ),
    own_family("odradek_client_push_interval_seconds", "s"): lambda client, now_ms: client.interval_ms / 1000,
    own_family("odradek_client_terminated"): lambda client, now_ms: float(client.terminated),
}
"""The value of each at a time. They have no prefix: dashboards and alerts know their names."""


HIDDEN: Final = own_family(
    "odradek_exposition_hidden_series", text="Series of clients that are not shown, by reason."
)
RENAMED: Final = own_family(
    "odradek_exposition_renamed_labels",
    text="Series with a label of the client under another name, because the data point has that name.",
)


def page_facts(clients: Sequence[ClientSeries]) -> Iterator[tuple[Family, Labels, int]]:
    """The series about a page with these clients."""
    for reason in (NAME_COLLISION, SERIES_COLLISION, LABELS_TOO_LONG):
        yield HIDDEN, (("reason", reason),), sum([each.mapped.hidden.get(reason, 0) for each in clients])
    yield RENAMED, (), sum([each.renamed for each in clients])


def fact_labels(fact: Family, client: ClientSeries) -> Labels:
    """The labels of a client's series of a family; those of `INFO` have all facts."""
    return client.info if fact.name == INFO else client.labels


def client_facts(client: ClientSeries, now_ms: int) -> list[MappedSeries]:
    """The series about a client, at a time in epoch milliseconds; none if it stands for no client."""
    if not client.is_client:
        return []
    return [
        MappedSeries(fact, fact_labels(fact, client), value(client, now_ms), 0, now_ms * 1_000_000, None)
        for fact, value in FACTS.items()
    ]
