"""The view of the clients: rows for pages and commands, from a fleet that a thread fills."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

from odradek.client.admin import AdminClient
from odradek_console.causes import Cause, Causes, told
from odradek_console.cluster_rows import TopicListing
from odradek_console.effects import EventRow, events
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import Places, State
from odradek_console.engine.client_series import ShapeCounts
from odradek_console.engine.fleet import Fleet, FleetLimits
from odradek_console.engine.owners import Owners
from odradek_console.engine.subscription_history import SubscriptionChange
from odradek_console.figures import sparkline_of
from odradek_console.group_pictures import GroupDetail, GroupRow, group_detail, group_rows
from odradek_console.kept_rows import KeptRows
from odradek_console.node_pictures import SuffererRow, sufferers
from odradek_console.overview import changes_of
from odradek_console.pictures import client_detail
from odradek_console.reading.topic_reader import TopicReader
from odradek_console.rows import ClientDetail, ClientRow, Reading, Sparkline, instance_of
from odradek_console.topic_pictures import TopicDetail, topic_details, uses_of
from odradek_console.upgrades import UpgradeRow, sent_by, upgrade_rows
from odradek_console.waterfall import Beside, beside_of

Made = TypeVar("Made")
TOPIC: Final = "__client_telemetry"
HISTORY_MS: Final = 12 * 3_600_000
MOST_EVENTS: Final = 200
AT_ONCE: Final = 100
"""Rows that are made without letting the reader work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """The topic to read, and the bounds of the memory."""

    topic: str = TOPIC
    history_ms: int = HISTORY_MS
    limits: FleetLimits = field(default_factory=FleetLimits)
    owners: Owners = field(default_factory=Owners)


class View:
    """Clients of a topic; a context manager. Any thread may call its methods.

    Args:
        connect: Makes a client of the cluster.
        settings: What is read.
        now_ms: Epoch milliseconds.
    """

    def __init__(
        self,
        connect: Callable[[], AdminClient],
        settings: ViewSettings | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.settings = settings or ViewSettings()
        self.now_ms = now_ms
        self.lock = threading.Lock()
        self.fleet = Fleet(self.settings.limits, self.settings.owners)
        self.rows = KeptRows(self.fleet)
        self.shared = Causes()
        self.counts = ShapeCounts()
        self.reader = TopicReader(
            connect=connect,
            topic=self.settings.topic,
            history_ms=self.settings.history_ms,
            fleet=self.fleet,
            lock=self.lock,
            prepare=self.rows.check,
            now_ms=now_ms,
        )

    def __enter__(self) -> Self:
        self.reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading."""
        self.reader.stop()

    @property
    def revision(self) -> int:
        """A number that grows with each change."""
        return self.reader.progress.revision

    def clients(self, wanted: Callable[[ClientRow], bool] = lambda row: True) -> list[ClientRow]:
        """The clients that are wanted, the one that pushed last at the end."""
        return [row for row in self.rows_and_causes()[0] if wanted(row)]

    def causes(self) -> list[Cause]:
        """What explains the troubles of several clients, that of the most clients first."""
        return self.rows_and_causes()[1]

    def rows_and_causes(self) -> tuple[list[ClientRow], list[Cause]]:
        """All clients, and what explains the troubles of several of them."""
        now_ms = self.now_ms()
        rows = self.in_turns(lambda some: self.rows.rows(some, now_ms))
        causes = self.shared.at(rows, now_ms)
        return told(rows, causes), causes

    def in_turns(self, make: Callable[[Sequence[Client]], Iterable[Made]]) -> list[Made]:
        """The rows of all clients, made for some at a time, so that the reader and other pages can go on."""
        with self.lock:
            clients = self.fleet.each_once()
        found: list[Made] = []
        for begin in range(0, len(clients), AT_ONCE):
            with self.lock:
                found += make(clients[begin : begin + AT_ONCE])
        return found

    def sparklines(self, instances: Collection[str]) -> dict[str, Sparkline]:
        """The last hour of some clients, by instance id."""
        now_ms = self.now_ms()
        with self.lock:
            clients = [each for key in instances if (each := self.fleet.clients.get(instance_of(key)))]
            found = {each.entry.key: sparkline_of(self.fleet, each, now_ms) for each in clients}
        return {key: each for key, each in found.items() if each is not None}

    def groups(self) -> list[GroupRow]:
        """The consumer groups, by name."""
        rows = self.clients()
        with self.lock:
            return list(group_rows(self.fleet, rows, self.now_ms()))

    def group(self, name: str) -> GroupDetail | None:
        """A consumer group in full; None if nobody knows it."""
        rows = self.clients()
        with self.lock:
            return group_detail(self.fleet, name, rows, self.now_ms())

    def sufferers(self) -> list[SuffererRow]:
        """The clients that are not gone, by the brokers that they talk to."""
        rows = {row.client_instance_id: row for row in self.clients() if row.state is not State.GONE}
        return self.in_turns(lambda some: sufferers(self.fleet, some, rows))

    def upgrades(self) -> list[UpgradeRow]:
        """What each version of Kafka means for each client."""
        rows = self.clients()
        return list(upgrade_rows(rows, dict(self.in_turns(lambda some: sent_by(self.fleet, some)))))

    def topics(self, listed: Sequence[TopicListing] | None) -> list[TopicDetail]:
        """The topics, by name, with those of the cluster."""
        rows = {row.client_instance_id: row for row in self.clients()}
        uses = self.in_turns(lambda some: uses_of(self.fleet, some, rows))
        with self.lock:
            groups = dict(self.fleet.lags.groups)
        return list(topic_details(uses, groups, listed, self.now_ms()))

    def events(self, subscriptions: Sequence[SubscriptionChange]) -> list[EventRow]:
        """What has changed as far back as is known, with the effects."""
        rows, now_ms = self.clients(), self.now_ms()
        changes = changes_of(rows, subscriptions, now_ms - self.settings.history_ms)[:MOST_EVENTS]
        with self.lock:
            return list(events(self.fleet, changes, rows, now_ms))

    def client(self, name: str, since_ms: int = 0) -> ClientDetail | None:
        """A client in full.

        Args:
            name: Its instance id; or its client id, which stands for the instance that pushed last and lives.
            since_ms: Only points of series from this time on.

        Returns:
            None if there is no such client.
        """
        now_ms = self.now_ms()
        with self.lock:
            found = self.find(name, now_ms)
            return None if found is None else client_detail(self.fleet, found, now_ms, since_ms)

    def beside(self, name: str) -> Beside | None:
        """The values of a client and of its peers; None if there is no such client."""
        now_ms = self.now_ms()
        with self.lock:
            found = self.find(name, now_ms)
            return None if found is None else beside_of(self.fleet, found, now_ms)

    def find(self, name: str, now_ms: int) -> Client | None:
        """The client of an instance id or a client id. The caller holds the lock."""
        exact = self.fleet.clients.get(instance_of(name))
        if exact is not None:
            return self.fleet.identities.face(exact)
        named = [each for each in reversed(self.fleet.each_once()) if each.entry.client_id == name]
        live = (each for each in named if each.entry.state(now_ms) is not State.GONE)
        return next(live, next(iter(named), None))

    def places(self, name: str) -> Places | None:
        """The positions of the latest pushes of a client in the topic; None if there is no such client."""
        now_ms = self.now_ms()
        with self.lock:
            found = self.find(name, now_ms)
            places = None if found is None else found.entry.places
            return places and places._replace(offsets=places.offsets[:])

    def series_with(self, instances: Collection[str], prefixes: tuple[str, ...]) -> int:
        """The number of series of some instances whose names begin with one of the prefixes."""

        def make(clients: Sequence[Client]) -> Iterator[int]:
            for each in clients:
                shape = each.history.shape
                if shape is not None and each.entry.key in instances:
                    yield self.counts.of(shape, prefixes)

        return sum(self.in_turns(make))

    def reading(self) -> Reading:
        """The progress of reading the topic, and the memory in use."""
        progress = self.reader.progress
        with self.lock:
            return Reading(
                topic=self.settings.topic,
                is_caught_up=progress.is_caught_up,
                problem=progress.problem,
                clients=len(self.fleet.clients),
                series=self.fleet.engine.clients.streams,
                held_bytes=self.fleet.held_bytes,
                scale=self.fleet.scale,
                counts=self.fleet.counts.to_json(),
            )
