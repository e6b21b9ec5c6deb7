"""Rows of a fleet, made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from statistics import median
from typing import Final

from odradek.findings.client_metrics import client_metrics
from odradek.findings.concerns import ROLES
from odradek.findings.hints import FINDINGS, SHARED
from odradek.findings.node_names import node_name
from odradek.findings.troubles import Kind
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import REFUSALS, ClientEntry, State
from odradek_console.engine.client_series import ClientSeries, Place
from odradek_console.engine.findings import Finding
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.lags import Behind
from odradek_console.engine.libraries import reports
from odradek_console.engine.series_history import Point
from odradek_console.figures import PUSHED, SEEN, figures_of, with_lag
from odradek_console.rows import ClientDetail, ClientRow, ConnectionRow, SeriesRow, TroubleRow

RANKS: Final = {
    each.id: rank for rank, each in enumerate(sorted(FINDINGS, key=lambda each: each.kind != Kind.LOSS))
}
"""The worst findings first: losses."""
LATENCIES: Final = tuple(metric for each in SHARED for metric in set(each.metrics.values()))
"""Metrics that clients tell by broker."""
MOST_PEERS: Final = 100
MOST_OTHERS: Final = 50


def client_row(fleet: Fleet, client: Client, now_ms: int) -> ClientRow:
    entry = client.entry
    place = entry.connections[-1] if entry.connections else None
    group = entry.group_id
    found = sorted(fleet.told(client, now_ms), key=lambda each: RANKS.get(each.id, len(RANKS)))
    parts = list(fleet.identities.parts(client))
    return ClientRow(
        client_instance_id=entry.key,
        client_id=entry.client_id,
        software=entry.software,
        version=entry.version,
        principal=entry.principal,
        group_id=group,
        app=entry.app,
        owner=fleet.owners.team(principal=entry.principal, client_id=entry.client_id, group_id=group),
        address=place.address if place else "",
        node_id=place.node_id if place else -1,
        cluster_id=(place.cluster_id if place else "") or entry.label("cluster_id"),
        gateway=entry.label("gateway"),
        state=fleet.state(client, now_ms),
        observed=entry.observed,
        sources=tuple(dict.fromkeys(SEEN if each.entry.observed else PUSHED for each in (client, *parts))),
        figures=with_lag(figures_of(fleet, client, now_ms), lag_of(fleet, entry)),
        source=entry.source,
        first_ms=entry.first_ms,
        last_ms=entry.last_ms,
        connected_ms=place.since_ms if place else entry.first_ms,
        before_node=entry.connections[-2].node_id if len(entry.connections) > 1 else -1,
        interval_ms=entry.interval_ms,
        subscription_id=entry.subscription_id,
        pushes=entry.pushes,
        gaps=entry.gaps,
        refused=entry.refused,
        last_error=error_name(entry.last_error),
        payload_bytes=entry.payload_bytes,
        series=len(client.history.roles),
        findings=tuple(dict.fromkeys(each.id for each in found if each.kind not in (Kind.NOTE, Kind.SHARED))),
        notes=tuple(dict.fromkeys(each.id for each in found if each.kind == Kind.NOTE)),
        causes=(),
        troubles=tuple(trouble_row(each) for each in found if each.kind != Kind.NOTE),
        brokers=tuple(sorted({node for each in (client, *parts) for node in brokers_of(fleet.series(each))})),
    )


def worst_rank(row: ClientRow) -> int:
    """The rank of the worst trouble of a client, also of one that a cause explains; notes come after them."""
    healthy = len(RANKS) + (not row.notes)
    return min((RANKS[each.id] for each in row.troubles if each.id in RANKS), default=healthy)


def lag_of(fleet: Fleet, entry: ClientEntry) -> Behind | None:
    """The lag of a client, if that of its group or its partitions is measured."""
    address = entry.connections[-1].address if entry.connections else ""
    return fleet.lags.of_client(entry.client_id, address, entry.group_id, entry.label("group_member_id"))


def trouble_row(finding: Finding) -> TroubleRow:
    broker = node_name(dict(finding.labels).get("node_id", ""))
    return TroubleRow(
        id=finding.id, since_ms=finding.since_ms, broker=broker, is_shared=finding.kind is Kind.SHARED
    )


def brokers_of(series: ClientSeries | None) -> Iterator[str]:
    """The node ids in the series of a client."""
    places = series.places if series is not None else {}
    found = (dict(each.labels).get("node_id", "") for name in LATENCIES for each in places.get(name, ()))
    return (name for each in found if (name := node_name(each)).isdecimal())


def error_name(code: int) -> str:
    """The name of a refusal; empty for none."""
    return REFUSALS.get(code, f"error {code}") if code else ""


def client_detail(fleet: Fleet, client: Client, now_ms: int, since_ms: int = 0) -> ClientDetail:
    """A client in full, with the points of its series from a time on."""
    entry = client.entry
    named = entry.client_id, entry.principal
    parts = list(fleet.identities.parts(client))
    others = (
        client_row(fleet, each, now_ms)
        for each in reversed(fleet.clients.values())
        if each is not client and each not in parts and (each.entry.client_id, each.entry.principal) == named
    )
    return ClientDetail(
        row=client_row(fleet, client, now_ms),
        labels=entry.labels,
        connections=tuple(ConnectionRow(**each._asdict()) for each in reversed(entry.connections)),
        parts=tuple(client_row(fleet, each, now_ms) for each in parts),
        others=tuple(islice(others, MOST_OTHERS)),
        findings=tuple(fleet.findings(client, now_ms)),
        ended=tuple(fleet.ended(client, now_ms)),
        series=tuple(row for each in (client, *parts) for row in series_rows(fleet, each, now_ms, since_ms)),
        not_reported=tuple(not_reported(client, fleet.series(client))),
        skew_ms=entry.skew_ms,
        gap_ms=entry.gap_ms,
        last_bytes=entry.last_bytes,
        largest_bytes=entry.largest_bytes,
        last_error_ms=entry.last_error_ms,
    )


def series_rows(fleet: Fleet, client: Client, now_ms: int, since_ms: int) -> Iterator[SeriesRow]:
    """The series of a client by name, with the median of its peers."""
    series = fleet.series(client)
    if series is None:
        return
    peers = [
        of_peer for each in peers_of(fleet, client, now_ms) if (of_peer := fleet.series(each)) is not None
    ]
    for name in sorted(series.places):
        known = client_metrics().get(name)
        for place in sorted(series.places[name], key=lambda each: each.labels):
            points = tuple(
                (each.time_ms, each.value) for each in client.history.points(place.place, since_ms)
            )
            yield SeriesRow(
                metric=name,
                labels=place.labels,
                kind="counter" if series.is_counter(place) else "gauge",
                source=SEEN if client.entry.observed else PUSHED,
                unit=known.unit if known else "",
                help=known.help if known else "",
                value=points[-1][1] if points else value_of(series.last(place)),
                peers=peer_median(peers, name, place),
                points=points,
            )


def value_of(point: Point | None) -> float | None:
    return None if point is None else point.value


ALIKE: Final[Mapping[str, Callable[[ClientEntry], tuple[str, ...]]]] = {
    "group": lambda entry: (entry.group_id,),
    "application": lambda entry: (entry.app, entry.principal),
    "library": lambda entry: (f"{entry.software} {entry.version}".strip(),),
}
"""What clients that are compared have in common, the closest first. Those without it have no peers."""


def peers_of(fleet: Fleet, client: Client, now_ms: int, kind: str = "application") -> list[Client]:
    """Other live clients that have something in common with one, at most `MOST_PEERS` of them."""
    found: list[Client] = []
    key = ALIKE[kind]
    wanted, faces = key(client.entry), (client, fleet.identities.face(client))
    for each in reversed(fleet.clients.values()) if wanted[0] else ():
        if len(found) == MOST_PEERS:
            break
        entry = each.entry
        if key(entry) == wanted and each is not client and entry.state(now_ms) is State.LIVE:
            found += [each] if fleet.identities.face(each) not in faces else []
    return found


def peer_median(peers: list[ClientSeries], name: str, place: Place) -> float | None:
    """The median of a series without labels among the peers; None for others."""
    if place.labels or not peers:
        return None
    values = [
        point.value
        for peer in peers
        for each in peer.places.get(name, ())
        if not each.labels and (point := peer.last(each)) is not None
    ]
    return median(values) if values else None


def not_reported(client: Client, series: ClientSeries | None) -> list[str]:
    """The metrics that findings need of a client of its role, and that its library does not send."""
    if series is None:
        return []
    roles = tuple(role for role in ROLES if any(name.startswith(role) for name in series.places))
    asked = {
        name for each in FINDINGS for name in (*each.metrics.values(), *[row.metric for row in each.also])
    }
    entry = client.entry
    return sorted(
        name for name in asked if name.startswith(roles) and not reports(entry.software, entry.version, name)
    )
