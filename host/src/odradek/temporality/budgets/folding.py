"""Applies the budgets: decides about the new streams of an engine, and passes hidden ones on to shared ones.

A stream over budget stays in the engine, hidden, and each increment of its total is added to a shared
stream: of the same client without some labels, or of an ``other`` instance. Shared streams are ordinary
streams of the engine, and routes are part of a client's state. Both change in the same transaction as the
position, so a crash neither loses nor doubles an increment.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from odradek.plugin import TelemetryRecord
from odradek.temporality.budgets.increments import Before, pass_on
from odradek.temporality.budgets.member import Member, facts_of_other, route_of
from odradek.temporality.budgets.members import Members
from odradek.temporality.budgets.others import Others
from odradek.temporality.budgets.policy import BudgetLimits, Level, Route, SeriesBudget
from odradek.temporality.budgets.series_counts import HOUR_MS, ClientFacts
from odradek.temporality.client_state import NO_ROUTE, OWN, ClientState, Mark
from odradek.temporality.clients import oldest_live_s, silence_ms
from odradek.temporality.engine import Engine
from odradek.temporality.shape import Shape
from odradek.temporality.stream_key import StreamKey

SWEPT_AT_ONCE: Final = 100
OWN_ROUTE: Final = Route(Level.OWN)


class Folding:
    """The budgets of one engine. Call `before` and `after` around each conversion. Not thread-safe."""

    def __init__(self, engine: Engine, limits: BudgetLimits | None = None) -> None:
        self.engine = engine
        self.limits = limits or BudgetLimits()
        self.members = Members(self.limits, engine)
        self.series = self.members.series
        self.policy = SeriesBudget(self.limits, self.series)
        self.others = Others(engine, self.members, self.policy)
        self.waiting: Iterator[bytes] = iter(())

    def before(self, record: TelemetryRecord) -> Before | None:
        """The totals of a record's client, for `after`; None if they are not needed."""
        instance_id = record.payload.client_instance_id
        client = self.engine.clients.states.get(instance_id)
        if client is None:
            return None
        is_routed = client.folded or client.routes is not None
        return Before(client) if is_routed or instance_id not in self.members.live else None

    def after(self, record: TelemetryRecord, facts: ClientFacts, before: Before | None) -> None:
        """Count the series that a record has created, and pass on the increments that it has added.

        Args:
            record: A record that the engine has just added to the totals.
            facts: The names by which its client is counted.
            before: The result of `before`.
        """
        instance_id = record.payload.client_instance_id
        client = self.engine.clients.states.get(instance_id)
        if client is None:
            return
        if before is not None and before.client is not client:
            before = None
        now_ms = client.last_ms
        self.series.hour = now_ms // HOUR_MS
        member = self.member(instance_id, client, facts, before)
        self.members.live.move_to_end(instance_id)
        if client.folded or client.routes is not None:
            parts = self.others.parts(instance_id, member)
            pass_on(client, parts, before)
            self.others.heard_from(parts, client)
        if client.closed:
            self.members.leave(instance_id, member, now_ms)
            self.forget_folded(instance_id, client)

    def member(
        self, instance_id: bytes, client: ClientState, facts: ClientFacts, before: Before | None
    ) -> Member:
        """The member of a client, with the streams that the client has now."""
        now_ms = client.last_ms
        member = self.members.live.get(instance_id)
        if member is not None and member.client is client and member.facts == facts:
            if member.shape is not client.shape:
                self.sort(instance_id, member, now_ms, None)
            return member
        if member is not None:
            self.members.leave(instance_id, member, now_ms)
        is_new = member is None or member.client is not client
        known = None if before is None else before.shape
        member = self.members.join(instance_id, client, facts)
        if is_new:
            self.admit(member, client)
        self.sort(instance_id, member, now_ms, known if is_new else client.shape)
        return member

    def admit(self, member: Member, client: ClientState) -> None:
        """Decide whether a client that is new, or was silent, has its own series."""
        if client.folded:
            return
        series = len(client.shape.keys) if client.routes is None else client.routes.count(OWN)
        patience_ms = silence_ms(client.interval_ms)
        level = self.policy.admit_client(member.budgets, series, client.last_ms, patience_ms)
        if level:
            client.folded, client.routes = level, None

    def sort(self, instance_id: bytes, member: Member, now_ms: int, known: Shape | None) -> None:
        """Decide about the new streams of a client, and count those that are shown as they are.

        Args:
            instance_id: The client instance.
            member: The instance as a member.
            now_ms: Epoch milliseconds.
            known: The streams whose routes are known although they are not counted; None if there are none.
        """
        client, old = member.client, member.shape
        keys = client.shape.keys
        member.parts = None
        if client.folded:
            self.members.hold(member)
            return
        fresh = self.fresh(client, old)
        if old is not None and keys[: len(old.keys)] != old.keys:
            self.members.uncount_dropped(member, now_ms)
        self.members.hold(member)
        decided, undecided = set(() if known is None else known.keys), []
        for position in fresh:
            key = keys[position]
            if client.distributions and (weight := member.weight(position)) > 1:
                member.weights[key] = weight
            route = OWN if client.routes is None else client.routes[position]
            if key not in decided or route == NO_ROUTE:
                undecided.append(position)
            elif route == OWN:
                member.count([key], self.series, now_ms)
            else:
                member.hidden.add(key)
        self.decide(instance_id, member, undecided, now_ms)
        self.members.hold(member)

    def fresh(self, client: ClientState, old: Shape | None) -> list[int]:
        """The positions of streams that are new, or that were part of a stream that is gone."""
        keys, routes = client.shape.keys, client.routes
        known = 0 if old is None else len(old.keys)
        if old is None or keys[:known] == old.keys:
            return list(range(known, len(keys)))
        before = set(old.keys)
        found = {position for position, key in enumerate(keys) if key not in before}
        if routes is not None:
            found.update([place for place, route in enumerate(routes) if route == NO_ROUTE])
        return sorted(found)

    def decide(self, instance_id: bytes, member: Member, positions: Sequence[int], now_ms: int) -> None:
        """Decide about new streams, all at once if there is room for them."""
        client = member.client
        keys = [client.shape.keys[position] for position in positions]
        weights = member.weights
        total = sum([weights.get(key, 1) for key in keys]) if weights else len(keys)
        if self.policy.has_room(len(keys), total, member.budgets, member.live):
            if client.routes is not None:
                for position in positions:
                    client.routes[position] = OWN
            member.count(keys, self.series, now_ms)
            return
        size = client.held_bytes
        for position, key in zip(positions, keys, strict=True):
            route = self.policy.admit(key, weights.get(key, 1), member.budgets, member.live)
            self.take(instance_id, member, position, key, route, now_ms)
        self.engine.clients.resized(instance_id, client, size)

    def take(
        self, instance_id: bytes, member: Member, position: int, key: StreamKey, route: Route, now_ms: int
    ) -> None:
        """Follow a decision about a stream."""
        client, target = member.client, route_of(route.level)
        if route == OWN_ROUTE:
            target = OWN
            member.count([key], self.series, now_ms)
        elif route.level == Level.OWN:
            found = self.others.reduced_stream(instance_id, member, key, route.labels, now_ms)
            target = route_of(Level.APP) if found is None else found
        elif route.level != Level.REFUSED:
            found = self.others.existing(member, key)
            target = target if found is None else found
        if target != OWN:
            member.hidden.add(key)
        if client.routes is None and target != OWN:
            client.routes = array("i", [OWN]) * len(client.shape.keys)
        if client.routes is not None:
            client.routes[position] = target

    def forget_folded(self, instance_id: bytes, client: ClientState) -> None:
        """Forget a folded instance, whose increments are part of others. An instance with cumulative counters
        stays, because their growth needs the last values."""
        is_cumulative = any(mark & Mark.CUMULATIVE for mark in client.marks.values())
        if client.folded and not is_cumulative and self.engine.clients.states.get(instance_id) is client:
            self.engine.clients.forget(instance_id)

    def sweep(self, now_ms: int, at_most: int = SWEPT_AT_ONCE) -> None:
        """Uncount instances that have ended and, in turns, ended streams of live instances.

        Args:
            now_ms: Epoch milliseconds.
            at_most: Limit of instances in one call.
        """
        for instance_id, member in list(islice(self.members.live.items(), at_most)):
            if not self.end(instance_id, member, now_ms):
                break
        for instance_id in list(islice(self.waiting, at_most)) or self.begin_turn():
            found = self.members.live.get(instance_id)
            if found is not None and not self.end(instance_id, found, now_ms):
                self.recount(found, now_ms)

    def begin_turn(self) -> Sequence[bytes]:
        self.waiting = iter(list(self.members.live))
        return ()

    def end(self, instance_id: bytes, member: Member, now_ms: int) -> bool:
        """Uncount an instance if it has ended; return whether it has."""
        clients = self.engine.clients
        if clients.states.get(instance_id) is member.client and clients.is_live(member.client, now_ms):
            return False
        self.members.leave(instance_id, member, now_ms)
        self.forget_folded(instance_id, member.client)
        return True

    def recount(self, member: Member, now_ms: int) -> None:
        """Uncount the streams of a live client that have ended, and count those that have come back."""
        client = member.client
        if client.folded or not client.seen or member.shape is not client.shape:
            return
        oldest_s = oldest_live_s(client, now_ms)
        if not member.ended and min(client.seen) >= oldest_s:
            return
        shown = [
            (key, client.seen[position] >= oldest_s)
            for position, key in enumerate(client.shape.keys)
            if key not in member.hidden
        ]
        back = [key for key, is_live in shown if is_live and key in member.ended]
        gone = [key for key, is_live in shown if not is_live and key not in member.ended]
        member.count(back, self.series, now_ms)
        member.uncount(gone, self.series, now_ms)
        member.ended.difference_update(back)
        member.ended.update(gone)

    def refresh(self, now_ms: int) -> set[bytes]:
        """Compute the gauges that are due; return the ``other`` instances that have changed since the last
        call. Call it before a commit."""
        return self.others.refresh(now_ms)

    def restore(self, facts_of: Callable[[bytes], ClientFacts | None]) -> None:
        """Count the live series of a restored engine, before the first record.

        Args:
            facts_of: Returns the names by which an instance is counted; None for one without budgets.
        """
        clients = self.engine.clients
        now_ms = clients.newest_ms
        self.series.hour = now_ms // HOUR_MS
        for instance_id, client in list(clients.states.items()):
            if client.closed or not clients.is_live(client, now_ms):
                continue
            facts = facts_of_other(instance_id) or facts_of(instance_id)
            if facts is None:
                continue
            member = self.members.join(instance_id, client, facts)
            self.sort(instance_id, member, now_ms, client.shape)
            if Level.OWN < client.folded < Level.REFUSED:
                member.budgets[client.folded - 1].is_folding = True
        for budget in self.members.budgets.values():
            budget.changed(now_ms)
        self.series.begin_hour()
