"""Members that have left their group and keep their connection: their applications hang.

A consumer that closes ends its connections right after it has left. One whose application does not call
poll() leaves as well, once ``max.poll.interval.ms`` is over, and stays connected.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final, NamedTuple

from odradek.findings.incidents import STUCK
from odradek.telemetry.client_key import ClientKey
from odradek.waiting.clock import Clock, Timer, TimerTask

STUCK_MS: Final = 15_000
"""A consumer that closes, or subscribes to other topics, needs less."""
CHECK_MS: Final = 1_000
MOST: Final = 10_000
"""Members that are followed; of further ones the oldest is forgotten."""
POLL_TIMEOUT: Final = "poll timeout"
"""Of a reason: Java clients say why they leave, also that they close or have unsubscribed."""


class Left(NamedTuple):
    """A member that has left."""

    key: ClientKey
    labels: Mapping[str, str]
    connection_id: str
    since_ms: int
    """On the monotonic clock."""


class StuckMembers:
    """Tells for how long members are stuck.

    Args:
        lasts: `Incidents.lasts`.
        clock: The time.
        timer: Looks at those that have left.
    """

    def __init__(self, lasts: Callable[..., None], clock: Clock, timer: Timer) -> None:
        self.lasts = lasts
        self.clock = clock
        self.timer = timer
        self.found: dict[tuple[Hashable, str], Left] = {}
        """By connection and group."""
        self.task: TimerTask | None = None

    def left(
        self, connection: Hashable, key: ClientKey, group: str, reason: str, connection_id: str = ""
    ) -> None:
        """A member has left its group.

        Args:
            connection: By which it left.
            key: The client.
            group: The group's id.
            reason: What it says; empty for nothing.
            connection_id: See `Incidents.add`.
        """
        if reason and POLL_TIMEOUT not in reason:
            return
        if len(self.found) >= MOST:
            del self.found[next(iter(self.found))]
        labels = {"group": group, "reason": reason}
        self.found[connection, group] = Left(key, labels, connection_id, self.clock.monotonic_ms())
        if self.task is None:
            self.look_later()

    def joined(self, connection: Hashable, group: str) -> None:
        """A member has joined its group."""
        self.found.pop((connection, group), None)

    def closed(self, connection: Hashable) -> None:
        """A connection has ended."""
        for place in [each for each in self.found if each[0] == connection]:
            del self.found[place]

    def look_later(self) -> None:
        self.task = self.timer.schedule(self.clock.monotonic_ms() + CHECK_MS, self.look)

    def look(self) -> None:
        """Tell those that have left some time ago."""
        now_ms = self.clock.monotonic_ms()
        for each in self.found.values():
            if now_ms - each.since_ms >= STUCK_MS:
                self.lasts(each.key, STUCK, each.labels, 2 * CHECK_MS, each.connection_id)
        self.task = None
        if self.found:
            self.look_later()

    def stop(self) -> None:
        """Forget all, and leave no timer behind."""
        self.found.clear()
        if self.task is not None:
            self.task.cancel()
            self.task = None
