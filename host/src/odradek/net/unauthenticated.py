"""The connections of SASL listeners that have not authenticated: few, and not for long.

A connection to another listener needs no such bound. It can send a request at once, and an idle one is closed
after ``connections.max.idle.ms``.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from itertools import islice
from typing import Any, Final, Protocol

from odradek.bounds.sampled_log import SampledLog
from odradek.waiting.clock import Clock, Timer, TimerTask

log = logging.getLogger(__name__)

PASSED_OVER: Final = 16
"""The most connections waiting for this host that are passed over to find one that waits for its client."""
CLOSED_AT_ONCE: Final = 100


class Stranger(Protocol):
    """The part of a channel that is used here."""

    @property
    def about(self) -> dict[str, Any]:
        """See `about_client`."""

    @property
    def pending(self) -> object | None:
        """Not None while the client waits for an answer."""

    def abort(self) -> None:
        """Close without sending the rest."""


class Unauthenticated:
    """The connections of one host, oldest first.

    Args:
        most: Their number; one more closes the oldest.
        max_ms: Time to authenticate. It starts again for a client whose password waits to be checked.
        clock: The time.
        timer: Closes connections whose time is over.
    """

    def __init__(self, most: int, max_ms: int, clock: Clock, timer: Timer) -> None:
        self.most = most
        self.max_ms = max_ms
        self.clock = clock
        self.timer = timer
        self.since_ms: OrderedDict[Stranger, int] = OrderedDict()
        self.task: TimerTask | None = None
        self.closed = 0
        """Connections that were closed because they did not authenticate."""
        self.closed_log = SampledLog(log)

    def __len__(self) -> int:
        return len(self.since_ms)

    def add(self, connection: Stranger) -> None:
        """A connection was accepted."""
        if len(self.since_ms) >= self.most:
            self.close(self.least_wanted(), "there are too many of them")
        self.since_ms[connection] = self.clock.monotonic_ms()
        self.plan()

    def remove(self, connection: Stranger) -> None:
        """A connection has authenticated, or is gone."""
        self.since_ms.pop(connection, None)
        if not self.since_ms and self.task is not None:
            self.task.cancel()
            self.task = None

    def least_wanted(self) -> Stranger:
        """The oldest connection, but rather one that has nothing to wait for."""
        oldest = islice(self.since_ms, PASSED_OVER)
        return next((each for each in oldest if each.pending is None), next(iter(self.since_ms)))

    def close(self, connection: Stranger, why: str) -> None:
        self.remove(connection)
        self.closed += 1
        self.closed_log.write(
            logging.INFO,
            self.clock.monotonic_ms(),
            "closing a connection that has not authenticated: %s",
            why,
            limit=self.most,
            **connection.about,
        )
        connection.abort()

    def plan(self) -> None:
        """Schedule the end of the oldest connection, unless that is scheduled."""
        if self.task is None and self.since_ms:
            deadline_ms = next(iter(self.since_ms.values())) + self.max_ms
            self.task = self.timer.schedule(deadline_ms, self.expire)

    def expire(self) -> None:
        """Close connections whose time is over, a bounded number at once."""
        self.task = None
        now_ms = self.clock.monotonic_ms()
        for connection, since_ms in list(islice(self.since_ms.items(), CLOSED_AT_ONCE)):
            if since_ms + self.max_ms > now_ms:
                break
            if connection.pending is None:
                self.close(connection, "its time is over")
            else:
                self.since_ms[connection] = now_ms
                self.since_ms.move_to_end(connection)
        self.plan()
