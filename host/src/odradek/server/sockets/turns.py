"""Turns for connections with several requests waiting, so that a client that pipelines does not delay others.

A connection with one request is answered as its bytes arrive. A connection with more joins a ring that all
listeners share: in its turn it answers a bounded number of requests, then it goes to the back. The ring is
served for two milliseconds, then the event loop reads the sockets again.

The first turn of a connection that joins comes before the ring's. It stays in the ring until it is found
with nothing to answer, so a client that pipelines is not first again whenever it runs out of requests. After
the new and old flows of FQ-CoDel (RFC 8290, section 4.2).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from odradek.clock import Clock
from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting

log = logging.getLogger(__name__)

ROUND_NS: Final = 2_000_000
"""How long the ring may keep the loop busy before the sockets are read again."""
READS_PER_ROUND: Final = 2
"""Connections with a full backlog that are read again after a round. Each may have a quarter of a megabyte to
read, and clients that pipeline run low at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """How much of the loop one connection may have at a time."""

    # fmt: off
    turn_requests: int = setting(
        "connections.turn.requests", Whole(INT, 1), 16,
        "Requests that a connection may have answered before the other connections have their turn.",
        unit="requests",
    )
    turn_bytes: int = setting(
        "connections.turn.bytes", Whole(INT, 1), 65_536,
        "Size of the requests after which a connection's turn ends, even if they are few.", unit="bytes",
    )
    # fmt: on


class TurnTaker(Protocol):
    """A connection: the part of a `Channel` that the ring uses."""

    in_ring: bool
    """Set by the ring."""

    def take_turn(self, end_ns: int) -> bool:
        """Answer requests until the limits of a turn are reached.

        Args:
            end_ns: When the turn ends at the latest.

        Returns:
            Whether a request was answered.
        """

    def abort(self) -> None:
        """Close without sending the rest."""


def call_soon(callback: Callable[[], Any]) -> object:
    """Call in the next round of the running loop."""
    return asyncio.get_running_loop().call_soon(callback)


class Turns:
    """The ring of one host.

    Args:
        clock: Measures the rounds.
        settings: The limits of a turn.
        call_soon: Calls in the next round of the event loop.
    """

    def __init__(
        self,
        clock: Clock,
        settings: TurnSettings,
        call_soon: Callable[[Callable[[], Any]], object] = call_soon,
    ) -> None:
        self.monotonic_ns = clock.monotonic_ns
        self.most_requests = settings.turn_requests
        self.most_bytes = settings.turn_bytes
        self.call_soon = call_soon
        self.joined: deque[TurnTaker] = deque()
        """Connections that have not had a turn since they joined."""
        self.ring: deque[TurnTaker] = deque()
        self.ring_overdue = False
        """No connection of the ring had a turn in the last round."""
        self.scheduled = False
        self.reads_left = READS_PER_ROUND
        self.used_up = 0
        """Turns that ended with requests left."""

    def __len__(self) -> int:
        return len(self.joined) + len(self.ring)

    def join(self, connection: TurnTaker) -> None:
        """Give a connection turns until it has nothing to answer. Does nothing if it is in the ring."""
        if not connection.in_ring:
            connection.in_ring = True
            self.joined.append(connection)
            self.schedule()

    def schedule(self) -> None:
        """Serve the ring in the next round of the loop."""
        if not self.scheduled:
            self.scheduled = True
            self.call_soon(self.round)

    def round(self) -> None:
        """Serve the connections until the time is used up: those that joined first, unless they had the whole
        last round.
        """
        end_ns = self.monotonic_ns() + ROUND_NS
        self.reads_left = READS_PER_ROUND
        queue = self.ring if self.ring_overdue and self.ring else self.joined or self.ring
        self.ring_overdue = True
        while queue:
            self.ring_overdue = self.ring_overdue and queue is not self.ring
            self.serve(queue.popleft(), end_ns)
            if self.monotonic_ns() >= end_ns:
                break
            queue = self.joined or self.ring
        self.scheduled = False
        if self.joined or self.ring:
            self.schedule()

    def may_read(self) -> bool:
        """Whether a connection that has a turn again soon may be read now: a few of them in each round."""
        self.reads_left -= 1
        return self.reads_left >= 0

    def serve(self, connection: TurnTaker, end_ns: int) -> None:
        """Give one connection a turn."""
        try:
            answered = connection.take_turn(end_ns)
        except Exception:
            # As the event loop does with an exception in `data_received`: a bug ends its own connection.
            log.exception("closing a connection: its requests cannot be answered")
            connection.in_ring = False
            connection.abort()
            return
        if answered:
            self.ring.append(connection)
        else:
            connection.in_ring = False
