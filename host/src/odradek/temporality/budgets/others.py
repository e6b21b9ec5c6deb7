"""The streams of ``other`` instances, and the streams of clients that are part of them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from odradek.temporality.budgets.member import Member, Other, Part, facts_of_other, level_of, other_id
from odradek.temporality.budgets.members import Members
from odradek.temporality.budgets.other_streams import reduced
from odradek.temporality.budgets.policy import OTHER_SERIES, Level, SeriesBudget
from odradek.temporality.budgets.shared_gauges import refresh_gauges
from odradek.temporality.client_state import NO_ROUTE, OWN, ClientState
from odradek.temporality.engine import Engine
from odradek.temporality.stream_key import Identity, Kind, StreamKey

GAUGES: Final = (Kind.GAUGE, Kind.SUM)
MAX_PLANS: Final = 4_096


class Others:
    """The ``other`` instances of one engine."""

    def __init__(self, engine: Engine, members: Members, policy: SeriesBudget) -> None:
        self.engine = engine
        self.members = members
        self.policy = policy
        self.plans: dict[tuple[int, bytes], list[Part]] = {}
        """The parts of folded clients, by shape and the ``other`` of their level."""
        self.touched: set[bytes] = set()
        """Instance ids of those with changes since the last `refresh`."""
        self.waiting: dict[bytes, Other] = {}
        """The instances whose gauges are due to be computed."""

    def parts(self, instance_id: bytes, member: Member) -> list[Part]:
        """The streams that the hidden streams of a client are part of."""
        if member.parts is None or not all(part.is_current for part in member.parts):
            member.parts = self.planned(member)
            for part in member.parts:
                if part.other is not None:
                    part.other.members[instance_id] = member
        return member.parts

    def planned(self, member: Member) -> list[Part]:
        """The parts of a client. Clients that are folded as a whole share them."""
        client, facts = member.client, member.facts
        if client.routes is not None:
            return self.plan(member)
        key = client.shape.number, other_id(Level(client.folded), facts)
        found = self.plans.get(key)
        if found is None or not all(part.is_current for part in found):
            if len(self.plans) >= MAX_PLANS:
                self.plans.clear()
            found = self.plan(member)
            self.plans[key] = found
        return found

    def plan(self, member: Member) -> list[Part]:
        """Find, or make, the stream that each hidden stream of a client is part of."""
        client, parts = member.client, dict[Other | None, Part]()
        found: tuple[Other | None, int] | None
        for position, key in enumerate(client.shape.keys):
            route = OWN if client.routes is None else client.routes[position]
            if client.folded:
                found = self.home(Level(client.folded), member, key)
            elif route >= 0:
                found = None, route
            else:
                found = self.home(level_of(route), member, key) if route < NO_ROUTE else None
            if found is None:
                continue
            other, home = found
            epoch = 0 if other is None else other.epoch
            part = parts.setdefault(other, Part(other, epoch))
            kind = self.engine.keys.identity(key).kind
            pairs = part.gauges if kind in GAUGES else part.distributions
            (part.sums if kind == Kind.COUNTER else pairs).append((position, home))
        return list(parts.values())

    def home(self, level: Level, member: Member, key: StreamKey) -> tuple[Other, int] | None:
        """The stream of an ``other`` that a client's stream is part of: of its level, or of a wider one.

        Returns:
            None if the stream is refused.
        """
        identity = reduced(self.engine.keys.identity(key), None)
        for wider in range(level, Level.REFUSED):
            found = self.stream(Level(wider), member, identity)
            if found is not None:
                return found
        return None

    def stream(self, level: Level, member: Member, identity: Identity) -> tuple[Other, int] | None:
        """A stream of an ``other``; None if it is missing, and a wider budget has no room for it."""
        instance_id, now_ms = other_id(level, member.facts), member.client.last_ms
        other = self.members.live.get(instance_id)
        key = self.engine.keys.key(identity)
        has_room = not any(budget.lacks(1) for budget in member.budgets[level:])
        if other is None and has_room:
            other = self.begin(instance_id, now_ms)
        place = None if other is None else other.position(key)
        if place is None and other is not None and has_room:
            place = self.new_stream(instance_id, other, key, now_ms, OTHER_SERIES)
        if place is None:
            return None
        assert isinstance(other, Other)
        return other, place

    def begin(self, instance_id: bytes, now_ms: int) -> Member:
        """An ``other`` instance that is new, or was silent."""
        client = self.engine.clients.of(instance_id, now_ms)
        client.last_ms = now_ms
        facts = facts_of_other(instance_id)
        assert facts is not None
        member = self.members.join(instance_id, client, facts)
        member.count(client.shape.keys, self.members.series, now_ms)
        self.members.hold(member)
        return member

    def new_stream(
        self, instance_id: bytes, member: Member, key: StreamKey, now_ms: int, at_most: int
    ) -> int | None:
        """Give an instance a stream, and count it; None if there is no room for it in the engine."""
        client, before = member.client, member.client.shape
        if len(before.keys) >= at_most:
            return None
        self.engine.clients.admit(instance_id, client, [key], now_ms)
        place = member.position(key)
        if place is None:
            return None
        client.seen[place] = now_ms // 1000
        if client.routes is not None:
            client.routes[place] = OWN
        if client.shape.keys[: len(before.keys)] != before.keys:
            self.members.uncount_dropped(member, now_ms)
            if isinstance(member, Other):
                member.epoch += 1
        member.count([key], self.members.series, now_ms)
        self.members.hold(member)
        return place

    def reduced_stream(
        self, instance_id: bytes, member: Member, key: StreamKey, labels: Container[str] | None, now_ms: int
    ) -> int | None:
        """The stream of the same client without some labels; None if the engine has no room for it."""
        place = self.existing(member, key) if labels is None else None
        shared = self.engine.keys.key(reduced(self.engine.keys.identity(key), labels))
        place = member.position(shared) if place is None else place
        if place is None:
            most = self.engine.limits.max_client_streams
            place = self.new_stream(instance_id, member, shared, now_ms, most)
        return place

    def existing(self, member: Member, key: StreamKey) -> int | None:
        """A stream that the client has already, without the widest label or without all labels; None if it
        has neither."""
        widest, identity = self.policy.widest(key), self.engine.keys.identity(key)
        for labels in ((widest,) if widest else None, None):
            shared = reduced(identity, labels)
            if shared != identity:
                place = member.position(self.engine.keys.key(shared))
                if place is not None and member.client.is_shown(place):
                    return place
        return None

    def heard_from(self, parts: Sequence[Part], client: ClientState) -> None:
        """Note that a client's push has changed ``other`` instances."""
        for part in parts:
            other = part.other
            if other is not None:
                shared = self.engine.clients.of(other.instance_id, client.last_ms)
                interval_ms = max(shared.interval_ms, client.interval_ms)
                now_ms = max(shared.last_ms, client.last_ms)
                self.engine.clients.heard_from(other.instance_id, shared, now_ms, interval_ms, False)
                self.members.live.move_to_end(other.instance_id)
                self.touched.add(other.instance_id)
                self.waiting[other.instance_id] = other

    def refresh(self, now_ms: int) -> set[bytes]:
        """Compute the gauges that are due; return the instances with changes since the last call."""
        for instance_id, other in list(self.waiting.items()):
            if refresh_gauges(other, now_ms):
                del self.waiting[instance_id]
                self.touched.add(instance_id)
                if instance_id in self.engine.clients.states:
                    self.engine.clients.changed.add(instance_id)
        found, self.touched = self.touched, set()
        return found
