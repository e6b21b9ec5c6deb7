"""The ends of clients that close without a terminating push.

A missing terminating push is no sign of death: most Java producers and admin clients close without one. Their
connections tell more. A client has left if it closed its connections in order and its group has lost it as
well. A client that was lost and comes back as another instance has left, too. Its last record says so, as a
terminating push would, so that everybody who reads the telemetry topic knows.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.waiting.clock import Clock, Timer, TimerTask

Name = tuple[str, str, bool]
"""Principal, client id, and whether the client is observed."""
CHECK_MS: Final = 1_000
"""A client closes its connections one after another, within this time."""
TOGETHER_MS: Final = 3 * CHECK_MS
"""The connections of a client that dies end within this time."""
TELL_MS: Final = 45_000
"""A client that restarts is back within this time, the session time-out of its group, or within two push
intervals. Otherwise it is told that the client is lost."""
KEEP_MS: Final = 3_600_000
"""The return of a client that was told to be lost is waited for so long."""
CONNECTION: Final = "connection"
"""It ended by a reset, a time-out, or while the client waited for an answer."""
GROUP: Final = "group"
"""The client is still a member."""
AWAITED: Final = frozenset({0, 24, 25, 26, 28})
"""API keys of the requests whose answers a client waits for before it closes: Produce, AddPartitionsToTxn,
AddOffsetsToTxn, EndTxn, TxnOffsetCommit. Others are left open by healthy clients, too, such as a Fetch and a
JoinGroup; a consumer that dies is known by its group."""
MAX_LOST: Final = 10_000
"""Lost clients whose return is waited for. Of further ones the oldest is forgotten."""
ENDED_MS: Final = 1_800_000
"""Sessions of groups are not longer (``group.max.session.timeout.ms``)."""
KEEPS_ITS_PLACE: Final = re.compile(r"-StreamThread-[0-9]+-(consumer|restore-consumer)\Z")
"""Client ids of Kafka Streams, whose members do not leave a group when they close
(``internal.leave.group.on.close``)."""


class Place(NamedTuple):
    """Where a client is known as a member of groups."""

    client_id: str
    address: str


@dataclass(slots=True, eq=False)
class Seen:
    """The last that was seen of a client."""

    instance: ClientMetricsInstance
    context: RequestContext
    """Its last request."""
    pushed: bool = True
    observed: bool = False
    task: TimerTask | None = None
    """Tells that it is lost, and then forgets it."""

    @property
    def instance_id(self) -> bytes:
        return self.instance.client_instance_id

    @property
    def place(self) -> Place:
        return Place(self.context.client_id or "", self.context.connection.client_address)

    @property
    def name(self) -> Name:
        """What an instance has in common with the one that takes its place."""
        return self.context.connection.principal, self.context.client_id or "", self.observed

    def goodbye(self, now_ms: int) -> TelemetryRecord:
        """The last record of the client: a terminating push without metrics."""
        return TelemetryRecord(
            replace(self.context, received_ms=now_ms),
            self.instance.push_interval_ms,
            ClientTelemetryPayload(self.instance_id, terminating=True, data=b""),
            self.instance.subscription_id,
            0,
            observed=self.observed,
        )


def nobody_asks(_lost: Seen, _why: str) -> None:
    """Tell nobody."""


class Goodbyes:
    """Says goodbye for clients that have left without a word.

    Args:
        say: Stores the last record of a client.
        members: The number of live members of groups, by place. Asked at most once a second.
        clock: The time.
        timer: Checks what has closed.
        tell: Tells that a client is lost, and why: its ``connection``, or its ``group``.
    """

    def __init__(
        self,
        say: Callable[[TelemetryRecord], object],
        members: Callable[[], Mapping[Place, int]],
        clock: Clock,
        timer: Timer,
        tell: Callable[[Seen, str], object] = nobody_asks,
    ) -> None:
        self.say = say
        self.tell = tell
        self.members = members
        self.clock = clock
        self.timer = timer
        self.open: dict[str, Seen] = {}
        """By connection: its last request for telemetry."""
        self.closing: list[Seen] = []
        """Clients whose connection closed in order since the last check."""
        self.lost: dict[Name, dict[bytes, Seen]] = {}
        """By name and instance."""
        self.lost_count = 0
        self.ended: OrderedDict[Place, int] = OrderedDict()
        """When a client's connections ended last, by place: its end was told as they said."""
        self.torn: OrderedDict[Place, int] = OrderedDict()
        """When a connection of a client ended last otherwise than in order, by place."""
        self.check: TimerTask | None = None

    def asked(self, instance: ClientMetricsInstance, context: RequestContext, *, pushes: bool) -> None:
        """Take note of a request for telemetry."""
        connection_id = context.connection.connection_id
        seen = self.open.get(connection_id)
        if seen is not None and seen.instance_id == instance.client_instance_id:
            seen.instance, seen.context, seen.pushed = instance, context, seen.pushed or pushes
            return
        self.open[connection_id] = seen = Seen(instance, context, pushes)
        self.began(seen)

    def began(self, seen: Seen) -> None:
        """A client is seen for the first time on its connection: it may be the return of a lost one."""
        found = self.lost.get(seen.name)
        if found is None:
            return
        back = found.get(seen.instance_id)
        lost = next(iter(found.values())) if back is None else back
        self.forget(lost)
        if back is None:
            self.say(lost.goodbye(self.clock.now_ms()))

    def closed(self, connection_id: str, *, in_order: bool) -> None:
        """A connection has ended.

        Args:
            connection_id: Of any connection.
            in_order: Its client has closed it, and no request was unanswered.
        """
        seen = self.open.pop(connection_id, None)
        if seen is None or not seen.pushed or seen.instance.has_left:
            return
        self.has_ended(seen.place)
        if not in_order and not seen.instance.terminating:
            self.lose(seen, CONNECTION, self.clock.monotonic_ms())
            return
        self.closing.append(seen)
        if self.check is None:
            self.check = self.timer.schedule(self.clock.monotonic_ms() + CHECK_MS, self.judge)

    def has_ended(self, place: Place) -> None:
        """A client that was followed has ended."""
        self.remember(self.ended, place)

    def was_torn(self, place: Place) -> None:
        """A connection of a client that pushes by another one has ended otherwise than in order."""
        self.remember(self.torn, place)

    def remember(self, when: OrderedDict[Place, int], place: Place) -> None:
        """Remember that something has happened now."""
        when[place] = self.clock.monotonic_ms()
        when.move_to_end(place)
        if len(when) > MAX_LOST:
            when.popitem(last=False)

    def judge(self) -> None:
        """Decide which of the clients that closed have left. Those with another connection go on."""
        self.check = None
        closed, self.closing = self.closing, []
        alive = {each.instance_id: each.place for each in self.open.values()}
        still = Counter(alive.values())
        members, now_ms = self.members(), self.clock.monotonic_ms()
        for seen in closed:
            instance = seen.instance
            if seen.instance_id in alive or instance.has_left:
                continue
            is_torn = self.torn.get(seen.place, -TOGETHER_MS) > now_ms - TOGETHER_MS
            if is_torn and not instance.terminating:
                self.lose(seen, CONNECTION, now_ms)
            elif is_member(seen.place, members, still) and not instance.terminating:
                self.lose(seen, GROUP, now_ms)
            else:
                self.say(seen.goodbye(self.clock.now_ms()))

    def lose(self, seen: Seen, why: str, ended_ms: int) -> None:
        """A client may be dead. Wait for its return.

        Args:
            seen: The client.
            why: See `tell`.
            ended_ms: When its connections ended, on the monotonic clock.
        """
        if self.lost_count >= MAX_LOST:
            self.forget(next(iter(next(iter(self.lost.values())).values())))
        again = self.lost.get(seen.name, {}).get(seen.instance_id)
        if again is not None:
            self.forget(again)
        wait_ms = max(TELL_MS, 2 * seen.instance.push_interval_ms)
        seen.task = self.timer.schedule(ended_ms + wait_ms, partial(self.told, seen, why))
        self.lost.setdefault(seen.name, {})[seen.instance_id] = seen
        self.lost_count += 1

    def told(self, seen: Seen, why: str) -> None:
        """A lost client has not come back in time, unless it goes on by another connection."""
        if any(each.instance_id == seen.instance_id for each in self.open.values()):
            self.forget(seen)
            return
        seen.task = self.timer.schedule(self.clock.monotonic_ms() + KEEP_MS, partial(self.forget, seen))
        self.tell(seen, why)

    def forget(self, seen: Seen) -> None:
        """Wait for the return of a lost client no longer."""
        if seen.task is not None:
            seen.task.cancel()
            seen.task = None
        found = self.lost[seen.name]
        del found[seen.instance_id]
        self.lost_count -= 1
        if not found:
            del self.lost[seen.name]

    def follows(self, place: Place) -> bool:
        """Whether a client at a place is connected, or was until a while ago."""
        ended_ms = self.ended.get(place)
        if ended_ms is not None and self.clock.monotonic_ms() - ended_ms < ENDED_MS:
            return True
        return any(each.place == place for each in self.open.values())

    def close(self) -> None:
        """Forget everything and leave no timer behind."""
        if self.check is not None:
            self.check.cancel()
            self.check = None
        for seen in [each for found in self.lost.values() for each in found.values()]:
            self.forget(seen)
        self.open.clear()
        self.closing.clear()


def is_member(place: Place, members: Mapping[Place, int], still: Mapping[Place, int]) -> bool:
    """Whether a group still has a client that has closed: it has more members there than clients are left."""
    return members.get(place, 0) > still.get(place, 0) and not KEEPS_ITS_PLACE.search(place.client_id)


def places(members: Iterable[tuple[str, str]]) -> Counter[Place]:
    """The members of groups by place; a host's groups write an address as Kafka does, ``/10.0.0.7``."""
    return Counter(Place(client_id, address.removeprefix("/")) for client_id, address in members)


def nobody_reads(_goodbye: TelemetryRecord) -> None:
    """Store nothing: nobody reads what clients push."""
