"""Rows of consumer groups, of their members and of their partitions, made on demand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.findings.troubles import COORDINATOR
from odradek_console.engine.client_entry import State
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.lags import Behind, GroupReport, Owner
from odradek_console.figures import HOUR_MS
from odradek_console.json_form import JsonRow
from odradek_console.rows import ClientRow

REBALANCES: Final = COORDINATOR + "rebalance.total"
REBALANCE_MS: Final = COORDINATOR + "rebalance.latency.total"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow(JsonRow):
    """A group of any type, as its clients tell, and as its lag was measured."""

    group_id: str
    type: str
    """``classic``, ``consumer``, ``share`` or ``streams``; empty if the lag of groups is not measured."""
    state: str
    """As its coordinator tells; empty if the lag of groups is not measured."""
    members: int | None
    live: int
    silent: int
    gone: int
    findings: tuple[str, ...]
    lag: float | None
    lag_s: float | None
    progress: tuple[str, ...]
    """How it gets on in its topics, such as ``stalled``."""
    rebalance_ms: float | None
    """The time that its members spent in rebalances in the last hour, together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow(JsonRow):
    """A member of a group: a client that is known, or one of which only its group tells."""

    client_id: str
    client_instance_id: str
    """Empty if the client is not known."""
    state: str
    address: str
    partitions: tuple[str, ...]
    lag: float | None
    lag_s: float | None
    rebalances: float | None
    """Rebalances of the last hour; None if its library does not count them."""
    rebalance_ms: float | None
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow(JsonRow):
    """A partition that a group reads."""

    topic: str
    partition: int
    lag: float | None
    lag_s: float | None
    offset: float | None
    member: str
    """The client id of its member; empty if it has none."""
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDetail(JsonRow):
    """A group in full."""

    row: GroupRow
    members_in_full: tuple[MemberRow, ...]
    partitions: tuple[PartitionRow, ...]


def group_rows(fleet: Fleet, rows: Sequence[ClientRow], now_ms: int) -> Iterator[GroupRow]:
    """All groups: those of clients, and those whose lag is measured."""
    by_group: dict[str, list[ClientRow]] = defaultdict(list)
    for row in rows:
        if row.group_id:
            by_group[row.group_id].append(row)
    for name in sorted({*by_group, *fleet.lags.groups}):
        yield group_row(fleet, name, by_group[name], now_ms)


def group_row(fleet: Fleet, name: str, rows: Sequence[ClientRow], now_ms: int) -> GroupRow:
    report, states = fleet.lags.groups.get(name), Counter(row.state for row in rows)
    whole = report.whole if report is not None else None
    spent = [
        spent_ms for row in rows if (spent_ms := last_hour(fleet, row, REBALANCE_MS, now_ms)) is not None
    ]
    return GroupRow(
        group_id=name,
        type=report.kind if report is not None else "",
        state=report.state if report is not None else "",
        members=report.members if report is not None else None,
        live=states[State.LIVE],
        silent=states[State.SILENT],
        gone=states[State.GONE],
        findings=tuple(dict.fromkeys(each.id for row in rows for each in row.troubles if not each.is_shared)),
        lag=whole.records if whole is not None else None,
        lag_s=whole.seconds if whole is not None else None,
        progress=tuple(sorted(set(report.progress.values()))) if report is not None else (),
        rebalance_ms=sum(spent) if spent else None,
    )


def group_detail(fleet: Fleet, name: str, rows: Sequence[ClientRow], now_ms: int) -> GroupDetail | None:
    """A group in full; None if nobody knows it."""
    report, found = fleet.lags.groups.get(name), [row for row in rows if row.group_id == name]
    if report is None and not found:
        return None
    return GroupDetail(
        row=group_row(fleet, name, found, now_ms),
        members_in_full=tuple(member_rows(fleet, report, found, now_ms)),
        partitions=tuple(partition_rows(report)) if report is not None else (),
    )


def member_rows(
    fleet: Fleet, report: GroupReport | None, rows: Sequence[ClientRow], now_ms: int
) -> Iterator[MemberRow]:
    """The clients of a group that are not gone, then the members that are no known clients."""
    lags = report.by_member() if report is not None else {}
    told: set[Owner] = set()
    for row in rows:
        own = [each for each in lags if (each.client_id, each.address) == (row.client_id, row.address)]
        own = own or [each for each in lags if each.client_id == row.client_id]
        if row.state is State.GONE:
            continue
        owner = own[0] if len(own) == 1 else None
        told.update(own)
        yield MemberRow(
            client_id=row.client_id,
            client_instance_id=row.client_instance_id,
            state=str(row.state),
            address=row.address,
            partitions=partitions_of(report, owner),
            lag=row.figure("lag"),
            lag_s=row.figure("lag_s"),
            rebalances=last_hour(fleet, row, REBALANCES, now_ms),
            rebalance_ms=last_hour(fleet, row, REBALANCE_MS, now_ms),
            findings=(*row.causes, *row.findings),
        )
    for owner, lag in lags.items():
        if owner not in told:
            yield unknown_member(report, owner, lag)


def unknown_member(report: GroupReport | None, owner: Owner, lag: Behind | None) -> MemberRow:
    """A member that pushes nothing, and that nobody observes."""
    return MemberRow(
        client_id=owner.client_id,
        client_instance_id="",
        state="unknown",
        address=owner.address,
        partitions=partitions_of(report, owner),
        lag=lag.records if lag is not None else None,
        lag_s=lag.seconds if lag is not None else None,
        rebalances=None,
        rebalance_ms=None,
        findings=(),
    )


def partitions_of(report: GroupReport | None, owner: Owner | None) -> tuple[str, ...]:
    """The partitions of a member, as ``topic-index``."""
    owned = report.owners.items() if report is not None and owner is not None else ()
    return tuple(f"{topic}-{index}" for (topic, index), each in sorted(owned) if each == owner)


def partition_rows(report: GroupReport) -> Iterator[PartitionRow]:
    """The partitions of a group, by topic and index."""
    nobody = Owner("", "", "")
    for topic, index in sorted({*report.records, *report.owners}):
        at, owner = (topic, index), report.owners.get((topic, index), nobody)
        yield PartitionRow(
            topic=topic,
            partition=index,
            lag=report.records.get(at),
            lag_s=report.seconds.get(at),
            offset=report.offsets.get(at),
            member=owner.client_id,
            address=owner.address,
        )


def last_hour(fleet: Fleet, row: ClientRow, metric: str, now_ms: int) -> float | None:
    """How much a counter of a client has grown in the last hour; None if nobody tells it."""
    client = fleet.clients.get(row.instance)
    for each in () if client is None else (client, *fleet.identities.parts(client)):
        series = fleet.series(each)
        places = series.whole(metric) if series is not None else []
        if places:
            return sum(
                row.values[place.place]
                for row in each.history.rows()
                if row.time_ms > now_ms - HOUR_MS
                for place in places
                if place.place < len(row.values) and row.values[place.place] == row.values[place.place]
            )
    return None
