"""What a person looks for first: how many clients are well, what has changed, and who is the worst."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final
from urllib.parse import urlencode

from odradek_console.engine.client_entry import State
from odradek_console.engine.subscription_history import SubscriptionChange
from odradek_console.figures import HOUR_MS, marked
from odradek_console.json_form import JsonRow
from odradek_console.rows import ClientRow
from odradek_console.text import counted

MOST: Final = 10
"""Clients of a measure, and changes."""
TOGETHER_MS: Final = 60_000
"""Clients that connect again within this time, or within two push intervals, do so for one reason."""
LEAST: Final = 2
"""Clients that connect again together."""
MEASURES: Final = {
    "lag_s": "Furthest behind",
    "lag": "Largest lag",
    "latency": "Longest latency",
    "throttled": "Most throttled",
    "idle": "Least idle",
    "records": "Most records",
    "bytes": "Most bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(JsonRow):
    """Something that has changed in the last hour."""

    time_ms: int
    text: str
    link: str
    app: str | None = None
    """The application that was deployed; None for other changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The first clients by one measure."""

    title: str
    link: str
    clients: Sequence[tuple[ClientRow, str]]
    """Each with its figure as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What stands above the clients."""

    states: Counter[str]
    findings: Sequence[tuple[str, int]]
    """The findings that no cause explains, with the number of their clients."""
    changes: Sequence[Change]
    worst: Sequence[Worst]


def overview_of(
    rows: Sequence[ClientRow], subscriptions: Iterable[SubscriptionChange], now_ms: int
) -> Overview:
    """The overview of all clients."""
    there = [row for row in rows if row.state is not State.GONE]
    return Overview(
        states=Counter(str(row.state) for row in rows),
        findings=Counter(name for row in rows for name in row.findings).most_common(),
        changes=changes_of(rows, subscriptions, now_ms - HOUR_MS)[:MOST],
        worst=[each for name, title in MEASURES.items() if (each := worst_by(there, name, title)).clients],
    )


def changes_of(
    rows: Sequence[ClientRow], subscriptions: Iterable[SubscriptionChange], since_ms: int
) -> list[Change]:
    """What has changed since a time, the newest first."""
    there = [row for row in rows if row.state is not State.GONE]
    found = [
        *deploys(rows, since_ms),
        *reconnects(there, since_ms),
        *of_subscriptions(subscriptions, since_ms),
    ]
    return sorted(found, key=lambda each: -each.time_ms)


def worst_by(rows: Iterable[ClientRow], name: str, title: str) -> Worst:
    """The first clients by a measure, of those that have any of it."""
    sign = 1 if name == "idle" else -1
    known = [(value, row) for row in rows if (value := row.figure(name)) is not None]
    some = (each for each in known if each[0] > 0 or name == "idle")
    first = nsmallest(MOST, some, key=lambda each: (sign * each[0], each[1].client_id))
    return Worst(
        title=title,
        link=f"/?sort={'' if sign > 0 else '-'}{name}",
        clients=[(row, marked(row.figures[name])) for _, row in first],
    )


def deploys(rows: Sequence[ClientRow], since_ms: int) -> Iterator[Change]:
    """Applications with new instances: of another version, in the place of others, or more of them.

    What was there when the console began to read is not new.
    """
    begin_ms = min((row.first_ms for row in rows), default=0)
    new, old = defaultdict[str, list[ClientRow]](list), defaultdict[str, list[ClientRow]](list)
    for row in rows:
        is_new = row.first_ms > max(since_ms, begin_ms + 2 * row.interval_ms)
        (new if is_new else old)[row.app].append(row)
    for app, found in new.items():
        before, after = (sorted({library(row) for row in some}) for some in (old[app], found))
        count = counted(len(found), "instance")
        if before and not set(after) <= set(before):
            text = f"{', '.join(before)} → {', '.join(each for each in after if each not in before)}, {count}"
        elif any(row.state is not State.LIVE for row in old[app]):
            text = f"{count} started again"
        else:
            text = f"{count} new"
        name = app or "clients without a name"
        link = "/?" + urlencode({"app": app or '""', "state": "*", "sort": "-first"})
        yield Change(time_ms=min(row.first_ms for row in found), text=f"{name}: {text}", link=link, app=app)


def library(row: ClientRow) -> str:
    """Library and version."""
    return f"{row.software} {row.version}".strip()


def reconnects(rows: Iterable[ClientRow], since_ms: int) -> Iterator[Change]:
    """Gateways and brokers whose clients connected again together, as after a restart."""
    again, others = defaultdict[str, list[ClientRow]](list), Counter[str]()
    for row in rows:
        is_again = row.before_node >= 0 and row.connected_ms > since_ms
        node = row.before_node if is_again else row.node_id
        place = f"gateway {row.gateway}" if row.gateway else f"broker {node}"
        if is_again:
            again[place].append(row)
        elif node >= 0:
            others[place] += 1
    for place, found in again.items():
        together = bunch(sorted(found, key=lambda row: row.connected_ms))
        everyone = len(found) + others[place]
        if len(together) >= LEAST and 2 * len(together) > everyone:
            kind, _, name = place.partition(" ")
            link = "/?" + urlencode({"gateway" if kind == "gateway" else "node": name})
            text = f"{place}: {len(together)} of {everyone} clients connected again: a restart?"
            yield Change(time_ms=together[0].connected_ms, text=text, link=link)


def bunch(rows: Sequence[ClientRow]) -> Sequence[ClientRow]:
    """The most clients that connected within a short time, of some in its order."""
    best: Sequence[ClientRow] = ()
    begin = 0
    for end, row in enumerate(rows, 1):
        while row.connected_ms - rows[begin].connected_ms > max(TOGETHER_MS, 2 * row.interval_ms):
            begin += 1
        best = max(best, rows[begin:end], key=len)
    return best


def of_subscriptions(changes: Iterable[SubscriptionChange], since_ms: int) -> Iterator[Change]:
    """The subscriptions that were changed."""
    for each in changes:
        if each.time_ms > since_ms:
            text = f"subscription {each.name} {each.act}{f' by {each.user}' if each.user else ''}"
            yield Change(time_ms=each.time_ms, text=text, link="/subscriptions/changes")
