"""The rows of clients, made again only after something has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import GONE_MS, ClientEntry, State
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.groups import Group
from odradek_console.engine.lags import Behind
from odradek_console.figures import with_lag
from odradek_console.pictures import client_row, lag_of
from odradek_console.rows import ClientRow

RENEWED_MS: Final = 10_000
"""The row of a client that changes with time is made again after this time, or up to twice as much: all rows
of 5000 clients take more than a second.
"""
FORGOTTEN: Final = 1_000
"""Rows of forgotten clients that may be kept."""


class Kept(NamedTuple):
    """A row, and what it was made of."""

    row: ClientRow
    entry: ClientEntry
    pushes: int
    begin_ms: int
    end_ms: int
    """When the client's state changes without a push."""
    group: dict[bytes, float] | None
    """The partitions of the members of its group."""
    lag_change: int | None
    """The last change of its group; None if nobody measures it."""
    lag: Behind | None


class KeptRows:
    """Rows by instance. Not thread-safe.

    Args:
        fleet: The clients.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.kept: dict[bytes, Kept] = {}

    def rows(self, clients: Sequence[Client], now_ms: int) -> list[ClientRow]:
        """The rows of some clients."""
        groups, found = self.fleet.groups.at(now_ms), list[ClientRow]()
        if len(self.kept) > len(self.fleet.clients) + FORGOTTEN:
            self.kept = {key: each for key, each in self.kept.items() if key in self.fleet.clients}
        for client in clients:
            entry = client.entry
            kept = self.kept.get(entry.instance_id)
            if (
                kept is None
                or kept.entry is not entry
                or kept.pushes != self.pushes(client)
                or not kept.begin_ms <= now_ms <= kept.end_ms
                or kept.group is not partitions_of(groups, kept.row.group_id)
                or kept.lag_change != self.fleet.lags.changes.get(kept.row.group_id)
            ):
                kept = self.kept[entry.instance_id] = self.made(client, now_ms)
            elif kept.lag is not (lag := lag_of(self.fleet, entry)):
                if lag is None:
                    kept = self.made(client, now_ms)
                else:
                    row = replace(kept.row, figures=with_lag(kept.row.figures, lag))
                    kept = kept._replace(row=row, lag=lag)
                self.kept[entry.instance_id] = kept
            found.append(kept.row)
        return found

    def pushes(self, client: Client) -> int:
        """The records that a row was made of."""
        return client.entry.pushes + sum(each.entry.pushes for each in self.fleet.identities.parts(client))

    def check(self, at_most: int, now_ms: int) -> bool:
        """Make rows of clients that have pushed, with their findings; whether all are done."""
        self.fleet.lags.read(now_ms)
        waiting = self.fleet.unchecked()
        faces = dict.fromkeys(self.fleet.identities.face(each) for each in waiting[:at_most])
        self.rows(list(faces), now_ms)
        for each in waiting[:at_most]:
            each.entry.is_checked = True  # also those that several others are alike
        return len(waiting) <= at_most

    def made(self, client: Client, now_ms: int) -> Kept:
        """The row of a client, made now."""
        row, entry = client_row(self.fleet, client, now_ms), client.entry
        group = partitions_of(self.fleet.groups.at(now_ms), row.group_id)
        told = (client, *self.fleet.identities.parts(client))
        ends_ms = min(each.entry.changes_ms(now_ms) for each in told if each is client or lives(each, now_ms))
        if ends_ms <= now_ms:  # it is silent, or nobody is heard
            spread_ms = int.from_bytes(entry.instance_id[-2:]) % RENEWED_MS
            gone_ms = entry.last_ms + max(GONE_MS, 4 * entry.interval_ms)
            ends_ms = min(now_ms + RENEWED_MS + spread_ms, gone_ms)
        change, lag = self.fleet.lags.changes.get(row.group_id), lag_of(self.fleet, entry)
        return Kept(row, entry, self.pushes(client), now_ms, ends_ms, group, change, lag)


def lives(client: Client, now_ms: int) -> bool:
    """Whether it pushes, or is observed."""
    return client.entry.state(now_ms) is State.LIVE


def partitions_of(groups: Mapping[str, Group], name: str) -> dict[bytes, float] | None:
    """The partitions of the members of a group; None if there is no such group."""
    return groups[name].partitions if name in groups else None
