"""The output of ``odradek lag``: what reads a topic and how far it is behind, the worst first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from odradek.cli.columns import MISSING
from odradek.lag.group_lag import GroupLag, PartitionLag, TopicLag
from odradek.lag.movement import Movement, Progress

LEAST_WIDTH: Final = 80
HEADINGS: Final = ("GROUP", "TOPIC", "LAG", "BEHIND", "PROGRESS")
FIXED: Final = (13, 9, 14)
"""Widths of the last three columns."""
UNITS: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))
CUT: Final = "~"


class Client(NamedTuple):
    """A client of a group."""

    client_id: str
    address: str


NOBODY: Final = Client("", "")
"""Has the partitions that no member has."""


class Row(NamedTuple):
    """A group, or a client of it, and a topic."""

    group: GroupLag
    topic: str
    lag: TopicLag
    movement: Movement
    client: Client | None = None
    """None for the whole group."""

    @property
    def reader(self) -> str:
        """Who reads."""
        if self.client is None:
            return self.group.group
        return "@".join(self.client) if any(self.client) else f"nobody of {self.group.group}"

    @property
    def badness(self) -> tuple[float, int]:
        """The lag in time, then in records; a lag without a known time comes after those with one."""
        return self.lag.time_ms or 0, self.lag.lag

    @property
    def progress(self) -> str:
        """How the group gets on."""
        if not self.lag.partitions:
            return "no offset"
        progress = self.movement.progress
        return MISSING if progress is Progress.UNKNOWN else str(progress)


class Movements:
    """How groups or clients move in their topics, from one round to the next.

    Args:
        by_client: Whether to tell the clients of a group apart.
    """

    def __init__(self, *, by_client: bool = False) -> None:
        self.by_client = by_client
        self.known: dict[tuple[str, str, Client | None], Movement] = {}

    def rows(self, groups: Iterable[GroupLag], now_ms: int) -> list[Row]:
        """The rows of a round, the worst first. What is no longer there is forgotten.

        Args:
            groups: All groups of the round.
            now_ms: The time on a monotonic clock.
        """
        before, self.known = self.known, {}
        rows = []
        for group in groups:
            for topic, whole in group.topics.items():
                for client, lag in clients_of(whole) if self.by_client else [(None, whole)]:
                    place = group.group, topic, client
                    movement = self.known[place] = before.get(place) or Movement()
                    movement.note(now_ms, sum(each.offset for each in lag.partitions), lag.lag)
                    rows.append(Row(group, topic, lag, movement, client))
        rows.sort(key=lambda row: (*(-each for each in row.badness), row.reader, row.topic))
        return rows


def clients_of(whole: TopicLag) -> Iterator[tuple[Client, TopicLag]]:
    """The lag of each client in a topic, by the partitions of its members; last that of no client."""
    mine: dict[Client, list[PartitionLag]] = defaultdict(list)
    owned: Counter[Client] = Counter()
    for owner in whole.owners.values():
        client = Client(owner.client_id, owner.address)
        mine[client] = []
        owned[client] += 1
    for each in whole.partitions:
        found = whole.owners.get(each.partition)
        client = NOBODY if found is None else Client(found.client_id, found.address)
        mine[client].append(each)
    for client, partitions in mine.items():
        uncommitted = max(owned[client] - len(partitions), 0)
        yield client, replace(whole, partitions=partitions, uncommitted=uncommitted, assigned=owned[client])


def duration(time_ms: int) -> str:
    """A time in its two largest units: ``2h 5m``."""
    whole_s = time_ms // 1_000
    for size, unit, smaller, name in UNITS:
        if whole_s >= size:
            return f"{whole_s // size}{unit} {whole_s % size // smaller}{name}"
    return f"{whole_s}s"


def table(rows: Sequence[Row], width: int = LEAST_WIDTH, most: int | None = None) -> Iterator[str]:
    """The rows as lines.

    Args:
        rows: The worst first.
        width: Of a line.
        most: Lines; None for all rows.
    """
    names = max(width, LEAST_WIDTH) - sum(FIXED) - len(HEADINGS) + 1
    widths = (names - names // 2, names // 2, *FIXED)
    headings = HEADINGS if all(row.client is None for row in rows) else ("CLIENT", *HEADINGS[1:])
    yield line(headings, widths)
    shown = rows if most is None or len(rows) < most else rows[: max(most - 2, 0)]
    for row in shown:
        is_read = bool(row.lag.partitions)
        time_ms = row.lag.time_ms
        behind = MISSING if time_ms is None or not is_read else duration(time_ms)
        lag = str(row.lag.lag) if is_read else MISSING
        yield line((row.reader, row.topic, lag, behind, row.progress), widths)
    if len(shown) < len(rows):
        yield f"and {len(rows) - len(shown)} more"


def line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells in columns: names from the left, numbers from the right."""
    cut = [
        cell if len(cell) <= width else cell[: width - 1] + CUT
        for cell, width in zip(cells, widths, strict=True)
    ]
    group, topic, lag, behind, progress = cut
    of_group, of_topic, of_lag, of_behind, _ = widths
    return (
        f"{group:<{of_group}} {topic:<{of_topic}} {lag:>{of_lag}} {behind:>{of_behind}} {progress}".rstrip()
    )


def objects(rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
    """The rows for scripts."""
    for row in rows:
        lag, movement = row.lag, row.movement
        yield {
            "group": row.group.group,
            "type": row.group.type,
            "state": row.group.state,
            "members": row.group.members,
            **({} if row.client is None else row.client._asdict()),
            "topic": row.topic,
            "lag": lag.lag if lag.partitions else None,
            "lag_seconds": seconds(lag.time_ms) if lag.partitions else None,
            "progress": row.progress,
            "lag_per_second": movement.lag_per_second,
            "uncommitted": lag.uncommitted,
            "partitions": [
                {
                    "partition": each.partition,
                    "offset": each.offset,
                    "lag": each.standing.lag,
                    "lag_seconds": seconds(each.time_ms),
                    "unstable": each.standing.unstable,
                    "lost": each.standing.lost,
                    "ahead": each.standing.ahead,
                }
                for each in lag.partitions
            ],
        }


def seconds(time_ms: int | None) -> float | None:
    """Milliseconds in seconds."""
    return None if time_ms is None else time_ms / 1_000
