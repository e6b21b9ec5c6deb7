"""Rows of topics: who writes and reads them, made on demand.

What a client pushes by topic, what a gateway or a host observes of it, and the members of groups whose lag is
measured are three signs of a use. None of them says that nobody else uses a topic: its last record does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from odradek.findings.incidents import OBSERVED
from odradek.findings.troubles import FETCH, PRODUCER
from odradek_console.cluster_rows import TopicListing
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import State
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.lags import GroupReport
from odradek_console.figures import MEASURED, PUSHED, SEEN
from odradek_console.json_form import JsonRow
from odradek_console.rows import ClientRow

WRITES, READS = "writes", "reads"
SIGNS: Final = {
    PRODUCER + "topic.record.send.total": WRITES,
    PRODUCER + "topic.record.send.rate": WRITES,
    OBSERVED + "topic.produce.records": WRITES,
    FETCH + "records.consumed.total": READS,
    FETCH + "records.consumed.rate": READS,
    OBSERVED + "topic.fetch.records": READS,
}
"""Metrics by topic; of a total and a rate the first one that is there counts."""
Rate = tuple[float | None, str]
"""Records per second, None if they are not new; and who tells them."""
OTHER: Final = "other"
"""Stands for the topics of a client that are too many."""
NEW_MS: Final = 86_400_000
"""A record that is younger was written by somebody, even if nobody tells who."""


class Usage(StrEnum):
    """Whether a topic is used, what is to be looked at first."""

    UNUSED = "unused"
    UNREAD = "not read"
    UNWRITTEN = "not written"
    UNKNOWN = "not known"
    USED = "used"


USAGES: Final[Mapping[tuple[bool | None, bool | None], Usage]] = {
    (True, True): Usage.USED,
    (True, False): Usage.UNREAD,
    (False, True): Usage.UNWRITTEN,
    (False, False): Usage.UNUSED,
}
"""By whether a topic is written and read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRow(JsonRow):
    """A client that writes or reads a topic."""

    topic: str
    use: str
    """``writes`` or ``reads``."""
    client_id: str
    client_instance_id: str
    """Empty for a member of a group that is not known as a client."""
    state: str
    group_id: str
    app: str
    library: str
    owner: str
    rate: float | None
    """Records per second; None if nobody tells them."""
    source: str
    """Who tells it: ``pushed``, ``observed``, or ``measured`` with the lag of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow(JsonRow):
    """A topic."""

    topic: str
    usage: Usage
    writers: int
    """Clients that are not gone."""
    readers: int
    written: float | None
    """Records per second, of all that tell."""
    read: float | None
    groups: tuple[str, ...]
    """Groups with a committed offset in it."""
    abandoned: tuple[str, ...]
    """Those of them that have no member."""
    lag: float | None
    """Of all groups."""
    partitions: int | None
    """None if the cluster does not tell its topics."""
    last_ms: int | None
    """The newest time of a record; None if there is none, or it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDetail(JsonRow):
    """A topic in full."""

    row: TopicRow
    uses: tuple[UseRow, ...]


def uses_of(fleet: Fleet, clients: Iterable[Client], rows: Mapping[str, ClientRow]) -> Iterator[UseRow]:
    """The topics that some clients write and read, by what they push and what is observed of them."""
    for client in clients:
        row = rows.get(client.entry.key)
        if row is None:
            continue
        told: dict[tuple[str, str], Rate] = {}
        for each in (client, *fleet.identities.parts(client)):
            for at, rate in signs_of(fleet, each):
                told[at] = better(told.get(at), rate)
        for (topic, use), (value, source) in told.items():
            yield use_row(row, topic, use, value, source)


def signs_of(fleet: Fleet, client: Client) -> Iterator[tuple[tuple[str, str], Rate]]:
    """Topic and use, with the rate, of each series by topic."""
    series, source = fleet.series(client), SEEN if client.entry.observed else PUSHED
    if series is None:
        return
    since_ms = series.fresh_ms(client.entry.interval_ms)
    for metric in SIGNS.keys() & series.places.keys():
        for place in series.places[metric]:
            topic, point = dict(place.labels).get("topic"), series.last(place)
            if topic and topic != OTHER and point is not None:
                yield (topic, SIGNS[metric]), (point.value if point.time_ms >= since_ms else None, source)


def better(before: Rate | None, found: Rate) -> Rate:
    """Of two rates the one that is known, and of those the client's own, then the larger one."""
    if before is None:
        return found
    return max(before, found, key=lambda each: (each[0] is not None, each[1] == PUSHED, each[0] or 0.0))


def use_row(row: ClientRow, topic: str, use: str, rate: float | None, source: str) -> UseRow:
    return UseRow(
        topic=topic,
        use=use,
        client_id=row.client_id or row.client_instance_id,
        client_instance_id=row.client_instance_id,
        state=str(row.state),
        group_id=row.group_id,
        app=row.app,
        library=f"{row.software} {row.version}".strip(),
        owner=row.owner,
        rate=rate,
        source=source,
    )


def members_of(groups: Mapping[str, GroupReport], known: Iterable[UseRow]) -> Iterator[UseRow]:
    """The readers of which only their group tells."""
    told = {(each.topic, each.group_id, each.client_id) for each in known if each.use == READS}
    for name, report in groups.items():
        for topic, client_id in sorted({(at[0], owner.client_id) for at, owner in report.owners.items()}):
            if (topic, name, client_id) not in told:
                yield UseRow(
                    topic=topic,
                    use=READS,
                    client_id=client_id,
                    client_instance_id="",
                    state="unknown",
                    group_id=name,
                    app=name,
                    library="",
                    owner="",
                    rate=None,
                    source=MEASURED,
                )


def topic_details(
    uses: Iterable[UseRow],
    groups: Mapping[str, GroupReport],
    listed: Sequence[TopicListing] | None,
    now_ms: int,
) -> Iterator[TopicDetail]:
    """All topics, by name.

    Args:
        uses: Who writes and reads them, as clients tell.
        groups: The groups whose lag is measured.
        listed: The topics of the cluster; None if it does not tell them.
        now_ms: Epoch milliseconds.
    """
    listings = {each.name: each for each in listed or ()}
    by_topic, reading = defaultdict[str, list[UseRow]](list), defaultdict[str, list[str]](list)
    for name, report in groups.items():
        for topic in {at[0] for at in (*report.offsets, *report.owners)}:
            reading[topic].append(name)
    known = renamed(uses, {*listings, *reading})
    for use in (*known, *members_of(groups, known)):
        by_topic[use.topic].append(use)
    for topic in sorted({*by_topic, *reading, *listings}):
        some = sorted(by_topic[topic], key=lambda each: (each.use != WRITES, each.client_id))
        reports = {name: groups[name] for name in sorted(reading[topic])}
        yield TopicDetail(
            row=topic_row(topic, some, reports, listings.get(topic), now_ms, is_measured=bool(groups)),
            uses=tuple(some),
        )


def renamed(uses: Iterable[UseRow], names: Collection[str]) -> list[UseRow]:
    """The uses with the names of topics that are known: Java consumers before 4.1 have no dots in theirs."""
    dotted = {name.replace(".", "_"): name for name in names}
    return [
        each if each.topic in names else replace(each, topic=dotted.get(each.topic, each.topic))
        for each in uses
    ]


def topic_row(
    topic: str,
    uses: Sequence[UseRow],
    groups: Mapping[str, GroupReport],
    listing: TopicListing | None,
    now_ms: int,
    *,
    is_measured: bool,
) -> TopicRow:
    """A topic. Without the lag of groups or the cluster it is not known that nobody uses it."""
    there = [each for each in uses if each.state != State.GONE]
    writers, readers = ([each for each in there if each.use == use] for use in (WRITES, READS))
    lags = [lag for each in groups.values() for at, lag in each.records.items() if at[0] == topic]
    last_ms = listing.last_ms if listing is not None else None
    is_new = last_ms is not None and now_ms - last_ms < NEW_MS
    is_written = bool(writers) or is_new or (None if listing is None else False)
    abandoned = tuple(name for name, each in groups.items() if not each.members)
    is_read = bool(readers) or len(abandoned) < len(groups) or (False if is_measured else None)
    return TopicRow(
        topic=topic,
        usage=USAGES.get((is_written, is_read), Usage.UNKNOWN),
        writers=len(writers),
        readers=len(readers),
        written=total(writers),
        read=total(readers),
        groups=tuple(groups),
        abandoned=abandoned,
        lag=sum(lags) if lags else None,
        partitions=listing.partitions if listing is not None else None,
        last_ms=last_ms,
    )


def total(uses: Iterable[UseRow]) -> float | None:
    """The rate of several; None if none of them is known."""
    known = [each.rate for each in uses if each.rate is not None]
    return sum(known) if known else None
