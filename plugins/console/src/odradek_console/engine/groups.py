"""The consumer groups of a fleet: the partitions of their members, and who has come and gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from odradek.findings.troubles import COORDINATOR
from odradek.temporality.clients import silence_ms
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import ClientEntry, State
from odradek_console.engine.client_series import ClientSeries

ASSIGNED: Final = COORDINATOR + "assigned.partitions"
REBALANCES: Final = (COORDINATOR + "rebalance.total", COORDINATOR + "rebalance.latency.total")
LOOK_MS: Final = 1_000
"""Between two looks at all clients."""
LATE_MS: Final = 60_000
"""A page that takes long asks for a time that is before the last look by less than this."""
STABLE_MS: Final = 120_000
"""A group whose members have not changed for so long is stable."""


@dataclass(slots=True)
class Group:
    """One group, as its clients tell."""

    partitions: dict[bytes, float] = field(default_factory=dict)
    """The assigned partitions of live members that tell them."""
    members: list[Client] = field(default_factory=list)
    """All clients of the group that are known, also those that are gone."""


class Groups:
    """The groups of a fleet, looked at once a second at most. Not thread-safe.

    Args:
        clients: The clients.
        series: The series of a client; None if it has none.
    """

    def __init__(
        self,
        clients: Callable[[], Iterable[Client]],
        series: Callable[[Client], ClientSeries | None],
    ) -> None:
        self.clients = clients
        self.series = series
        self.seen_ms = -LATE_MS
        """When all clients were looked at."""
        self.found: dict[str, Group] = {}

    def at(self, now_ms: int) -> dict[str, Group]:
        """All groups by name. Partitions that have not changed stay the same object, and so do rows.

        What is pushed after a look is seen by the next one.
        """
        if not -LATE_MS < now_ms - self.seen_ms < LOOK_MS:
            before, self.seen_ms, self.found = self.found, now_ms, {}
            for client in self.clients():
                if client.entry.group_id:
                    self.add(client, now_ms)
            for name, group in self.found.items():
                old = before.get(name)
                if old is not None and old.partitions == group.partitions:
                    group.partitions = old.partitions
        return self.found

    def add(self, client: Client, now_ms: int) -> None:
        group = self.found.setdefault(client.entry.group_id, Group())
        group.members.append(client)
        if client.entry.state(now_ms) is State.LIVE:
            partitions = self.assigned(client)
            if partitions is not None:
                group.partitions[client.entry.instance_id] = partitions

    def assigned(self, client: Client) -> float | None:
        """The assigned partitions of a client as of its last push; None if it has told none."""
        if client.assigned[0] != client.entry.pushes:
            series = self.series(client)
            fresh_ms = series.fresh_ms(client.entry.interval_ms) if series is not None else 0
            values = series.latest(ASSIGNED, fresh_ms) if series is not None else []
            client.assigned = client.entry.pushes, sum(values) if values else None
        return client.assigned[1]

    def share(self, entry: ClientEntry, now_ms: int) -> float | None:
        """The partitions of a member divided by the mean of its group; None if that says nothing.

        While members come and go, and just after it, their partitions are uneven for good reasons.
        """
        group = self.at(now_ms).get(entry.group_id) if entry.group_id else None
        shares = group.partitions if group is not None else {}
        if group is None or len(shares) < 2 or entry.instance_id not in shares:
            return None
        mean, own = sum(shares.values()) / len(shares), shares[entry.instance_id]
        # A difference of one partition cannot be avoided.
        if not mean or own - min(shares.values()) <= 1:
            return None
        since_ms = now_ms - max(STABLE_MS, 2 * entry.interval_ms)
        is_stable = not churn(group.members, since_ms, now_ms) and not self.rebalanced(group, since_ms)
        return own / mean if is_stable else None

    def rebalanced(self, group: Group, since_ms: int) -> bool:
        """Whether a member tells of a rebalance since a time."""
        for client in group.members:
            series = self.series(client) if client.entry.last_ms >= since_ms else None
            if series is not None and any(
                value and time_ms >= since_ms
                for name in REBALANCES
                for place in series.whole(name)
                for time_ms, value in series.values(place)
            ):
                return True
        return False

    def changes(self, name: str, since_ms: int, now_ms: int) -> int:
        """The members that have come or gone since a time."""
        group = self.at(now_ms).get(name)
        return churn(group.members, since_ms, now_ms) if group is not None else 0


def churn(members: Iterable[Client], since_ms: int, now_ms: int) -> int:
    """The clients that live and did not at a time, or lived then and do not now."""
    return sum(lived(each.entry, since_ms) != (each.entry.state(now_ms) is State.LIVE) for each in members)


def lived(entry: ClientEntry, at_ms: int) -> bool:
    """Whether a client pushed at a time in the past."""
    end_ms = entry.last_ms + (0 if entry.terminated else silence_ms(entry.interval_ms))
    return entry.first_ms <= at_ms <= end_ms
