"""Turns of the connections on the loop, so that a client that needs much of it does not delay the others.

A connection with one request is answered as its bytes arrive. A connection with more joins a ring that all
listeners share: in its turn it answers a bounded number of requests, then it goes to the back. The ring is
served for half a millisecond, then the event loop reads the sockets again.

A pass of the loop serves every socket that has something to read, so hundreds of clients that each send one
costly request at a time would make it tens of milliseconds long. Once a pass has answered requests for a
while, only light connections are still answered at once; a request of any other joins the ring, and the rest
of a large frame is received later, that of a few connections in each round. A connection is light while it
uses less than a small share of the loop's time. A new one is not: it must exist for some time before it has a
share to use, or a client would only have to connect again.

Requests that take long, and run in steps, alternate with the ring: a pass of the loop does a piece of one of
them, so it is half as long as if it did a piece of each. After such a piece only light connections are
answered at once.

The first turn of a connection that joins comes before the ring's; one with a single request comes before
those with more. It stays in the ring until it is found with nothing to answer, so a client that pipelines is
not first again whenever it runs out of requests; one that waits for each answer does not stay. After the new
and old flows of FQ-CoDel (RFC 8290, section 4.2).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from odradek.net.departures import Departures
from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

ROUND_NS: Final = 500_000
"""How long the ring may keep the loop busy before the sockets are read again."""
FREE_NS: Final = 250_000
"""How long a pass of the loop answers everybody before connections that are not light have to wait."""
LONG_PASS_NS: Final = 1_000_000
"""After this time beyond `FREE_NS` a light connection has to wait, too, before it receives more of a large
frame. libuv reads a socket up to 32 times in a row while it fills the buffer, and the kernel may take half a
millisecond to find memory for 64 KiB."""
RESERVE_NS: Final = 500_000
"""The part of its share that a connection has to leave: a new one is not light."""
COUNTED_NS: Final = 4_000_000_000
"""After this time, what a connection has used counts half."""
SINGLES: Final = 0
"""The index of `singles` in `Turns.queues`."""
READS_PER_ROUND: Final = 2
"""Connections that are read again after a round, with a full backlog or in the middle of a large frame. Each
may have a megabyte to read, and clients that pipeline run low at the same time."""


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
    light_percent: int = setting(
        "connections.light.percent", Whole(INT, 0, 100), 1,
        "Share of the loop's time up to which a connection is answered at once while the loop is busy. The "
        "requests of the others wait for their turn.", unit="percent",
    )
    # fmt: on


class TurnTaker(Protocol):
    """A connection: the part of a `Channel` that the ring uses."""

    @property
    def about(self) -> dict[str, Any]:
        """See `about_client`."""

    in_ring: bool
    """Set by the ring."""
    used_ns: int
    """Time of the loop that it has used since `counted_since_ns`."""
    counted_since_ns: int

    def take_turn(self, end_ns: int) -> bool:
        """Answer requests until the limits of a turn are reached.

        Args:
            end_ns: When the turn ends at the latest.

        Returns:
            Whether a request was answered.
        """

    def has_request(self) -> bool:
        """Whether it has a whole request that is not answered."""

    def read_next_piece(self) -> None:
        """Read the rest of a large frame; see `Turns.read_later`."""

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
        self.singles: deque[TurnTaker] = deque()
        """Connections that joined with one request and have not had a turn since."""
        self.joined: deque[TurnTaker] = deque()
        """The same with several requests."""
        self.ring: deque[TurnTaker] = deque()
        self.unread: deque[TurnTaker] = deque()
        """Connections in the middle of large frames."""
        self.departures = Departures(self.soon)
        """Connections whose clients have left."""
        self.work: deque[Callable[[], None]] = deque()
        """The turns of the ring and of long requests that are due. The first one may have begun."""
        self.queues = self.singles, self.joined, self.ring
        """A round serves them in this order, but for those that are overdue."""
        self.overdue: list[int] = []
        """The queues that had no turn in the last round, the one that waits longest first."""
        self.scheduled = False
        self.reads_left = READS_PER_ROUND
        self.light_percent = settings.light_percent
        self.free_until_ns = 0
        """Before this time, everybody is answered at once."""
        self.pass_began = False
        """The pass of the loop that is measured has not ended."""
        self.passes = 0
        self.used_up = 0
        """Turns that ended with requests left."""
        self.delayed = 0
        """Single requests that had to wait for their turn."""

    def __len__(self) -> int:
        return len(self.singles) + len(self.joined) + len(self.ring)

    def join(self, connection: TurnTaker, *, single: bool = False) -> None:
        """Give a connection turns until it has nothing to answer. Does nothing if it is in the ring.

        Args:
            connection: The connection.
            single: It has one request.
        """
        if not connection.in_ring:
            connection.in_ring = True
            (self.singles if single else self.joined).append(connection)
            self.schedule()

    def read_later(self, connection: TurnTaker) -> None:
        """Read a connection again in one of the next rounds: each piece may have a megabyte."""
        self.unread.append(connection)
        self.schedule()

    @property
    def is_busy(self) -> bool:
        """Whether this pass of the loop has used up the time in which no request has to wait."""
        return self.pass_began and self.monotonic_ns() > self.free_until_ns

    def must_wait(self, connection: TurnTaker, now_ns: int) -> bool:
        """Whether a connection has to wait with a request that has arrived after `free_until_ns`.

        That time may be over because the loop was idle. So the first such request begins a pass, unless
        other work has; only one that finds the time of this pass used up may have to wait.
        """
        if not self.pass_began:
            self.begin_pass(now_ns)
            return False
        if self.is_light(connection, now_ns):
            return False
        self.delayed += 1
        return True

    def must_pause(self, connection: TurnTaker, now_ns: int) -> bool:
        """Whether a connection has to wait before it receives more of a large frame; see `must_wait`."""
        return self.must_wait(connection, now_ns) or now_ns > self.free_until_ns + LONG_PASS_NS

    def begin_pass(self, now_ns: int) -> None:
        """Measure a pass of the loop, which ends with the next round of callbacks."""
        self.passes += 1
        self.pass_began = True
        self.free_until_ns = now_ns + FREE_NS
        self.call_soon(partial(self.end_pass, self.passes))

    def end_pass(self, number: int) -> None:
        """The loop has served all sockets and begins again. Ignored if a later pass has begun."""
        if number == self.passes:
            self.pass_began = False
            self.free_until_ns = self.monotonic_ns() + FREE_NS

    def is_light(self, connection: TurnTaker, now_ns: int) -> bool:
        """Whether a connection has used less than its share of the loop."""
        age_ns = now_ns - connection.counted_since_ns
        if age_ns > COUNTED_NS:
            connection.counted_since_ns += age_ns // 2
            connection.used_ns //= 2
        return 100 * (connection.used_ns + RESERVE_NS) <= self.light_percent * age_ns

    def soon(self, work: Callable[[], None]) -> None:
        """Do work that may take a while in one of the next passes of the loop: a piece in each of them."""
        self.work.append(work)
        if len(self.work) == 1:
            self.call_soon(self.do_work)

    def do_work(self) -> None:
        """Do one piece of work, which uses up the time of the pass in which everybody is answered at once."""
        self.begin_pass(self.monotonic_ns())
        try:
            self.work[0]()
        finally:
            self.work.popleft()
            if self.work:
                self.call_soon(self.do_work)

    def schedule(self) -> None:
        """Serve the ring soon."""
        if not self.scheduled:
            self.scheduled = True
            self.soon(self.round)

    def round(self) -> None:
        """Serve the connections until the time is used up: those that joined first, but in every second round
        after a queue that had no turn in the last one. So all queues go on, however little a round serves.
        """
        end_ns = self.monotonic_ns() + ROUND_NS
        self.reads_left = READS_PER_ROUND
        while self.unread and self.may_read():
            self.unread.popleft().read_next_piece()
        now_ns = self.monotonic_ns()
        late = [] if SINGLES in self.overdue else list(self.overdue)
        served = set[int]()
        while (number := self.next_queue(late)) is not None:
            served.add(number)
            now_ns = self.serve(self.queues[number].popleft(), now_ns, end_ns, single=number == SINGLES)
            if now_ns >= end_ns:
                break
        longest_first = dict.fromkeys((*self.overdue, *range(len(self.queues))))
        self.overdue = [each for each in longest_first if self.queues[each] and each not in served]
        self.scheduled = False
        if self.unread or any(self.queues):
            self.schedule()

    def next_queue(self, late: list[int]) -> int | None:
        """The number of the queue whose turn is next: a late one, else the first that is not empty."""
        numbers = (*late[:1], *range(len(self.queues)))
        del late[:1]
        return next((each for each in numbers if self.queues[each]), None)

    def may_read(self) -> bool:
        """Whether a connection that has a turn again soon may be read now: a few of them in each round."""
        self.reads_left -= 1
        return self.reads_left >= 0

    def serve(self, connection: TurnTaker, now_ns: int, end_ns: int, *, single: bool) -> int:
        """Give one connection a turn. It goes to the back of the ring; one that joined with a single request
        only if it has another one. Returns the time after the turn.
        """
        connection.in_ring = not single
        try:
            answered = connection.take_turn(end_ns)
        except Exception:
            # As the event loop does with an exception in `data_received`: a bug ends its own connection.
            log.exception("closing a connection: its requests cannot be answered", extra=connection.about)
            connection.abort()
            answered = False
        ended_ns = self.monotonic_ns()
        connection.used_ns += ended_ns - now_ns
        if single:
            if answered and connection.has_request():
                self.join(connection)
        elif answered:
            self.ring.append(connection)
        else:
            connection.in_ring = False
        return ended_ns
