"""Pairs that stand still: clients that have left unseen, and brokers that take nothing or say nothing.

The loop sees the end of a connection only where it reads, and a client is not read while its broker does not
take what it has sent. So a broker that hangs would keep the connections of all clients that leave. The pairs
that nothing else would end are looked at each second. The clients of those that stand still are read on,
within the memory of all pairs: their end comes after the last byte that they have sent.
"""

from __future__ import annotations

import logging
import select
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Protocol

from odradek.bounds.sampled_log import SampledLog
from odradek.gateway.pair import Pair
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.net.pairs.dialer import BOOTSTRAP
from odradek.net.pairs.pair_bytes import PairBytes
from odradek.net.pairs.socket_end import SocketEnd
from odradek.waiting.clock import Clock, Timer

log = logging.getLogger(__name__)

CHECK_MS: Final = 1_000
LEFT_MS: Final = 2_000
"""A pair whose client has left ends when its broker has taken nothing for so long. What the client sent last
needs some time: producers with acks=0 send, and leave."""
LINGER_MS: Final = 30_000
"""A client that takes nothing for so long does not get the rest of what its broker has sent."""
READ_ON_BYTES: Final = 64 << 20
"""The most that waits for one broker that stands still: more than the systems of both ends hold back."""
HUNG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux tells of the end of a connection before its last bytes are read; other systems only of a reset."""

Standstill = tuple[tuple[int, ...], int]
"""The numbers that change while a pair goes on, and the time since which they have not, monotonic in ms."""


class WatchedPair(Protocol):
    """The client's side of a pair: a `ClientSide`."""

    pair: Pair | None

    @property
    def awaits_broker(self) -> bool: ...
    @property
    def broker_address(self) -> str: ...
    def progress(self, now_ms: int) -> tuple[int, ...] | None: ...
    def descriptor(self) -> int: ...
    def read_on(self, most_bytes: int) -> None: ...
    def give_up(self, cause: Cause) -> None: ...


class Standstills:
    """The pairs of one gateway that may stand still.

    Args:
        stuck_ms: The time that a broker may take nothing, or leave the first request without an answer.
        clock: The time.
        timer: Runs checks.
        memory: Of all pairs. Clients are only read on while half of it is free.
    """

    def __init__(self, stuck_ms: int, clock: Clock, timer: Timer, memory: PairBytes) -> None:
        self.memory = memory
        self.stuck_ms = stuck_ms
        self.clock = clock
        self.timer = timer
        self.pairs: dict[WatchedPair, Standstill | None] = {}
        """The pairs that are not read, or have no answer yet; None if they went on since the last check."""
        self.ending: dict[SocketEnd, tuple[int, Standstill | None]] = {}
        """Connections that close when all is sent, with the time that their peers may take nothing."""
        self.stuck: Counter[str] = Counter()
        """Connections to brokers that were ended here, by node id."""
        self.stuck_log = SampledLog(log)
        self.is_scheduled = False

    def watch(self, side: WatchedPair) -> None:
        """A pair may stand still from now on."""
        self.pairs[side] = None
        self.check_later()

    def linger(self, end: SocketEnd, limit_ms: int) -> None:
        """End a connection that is being closed, if its peer takes nothing of the rest for so long."""
        self.ending[end] = (limit_ms, None)
        self.check_later()

    def gone(self, end: Any) -> None:
        """A connection is gone: nothing of it stays here until the next check."""
        self.pairs.pop(end, None)
        self.ending.pop(end, None)

    def check_later(self) -> None:
        if not self.is_scheduled:
            self.is_scheduled = True
            self.timer.schedule(self.clock.monotonic_ms() + CHECK_MS, self.check)

    def check(self) -> None:
        """End what stands still."""
        self.is_scheduled = False
        now_ms = self.clock.monotonic_ms()
        self.check_pairs(now_ms)
        self.check_ending(now_ms)
        if self.pairs or self.ending:
            self.check_later()

    def check_pairs(self, now_ms: int) -> None:
        """End the pairs whose client has left, or whose broker had its time."""
        standing = [side for side, for_ms in self.standing(now_ms) if not self.is_stuck(side, for_ms, now_ms)]
        for side in left(standing):
            side.give_up(Cause.CLIENT)
        if self.memory.total_bytes < self.memory.limit_bytes // 2:
            for side in standing:
                side.read_on(min(self.memory.limit_bytes // 4, READ_ON_BYTES))

    def standing(self, now_ms: int) -> list[tuple[WatchedPair, int]]:
        """The pairs that stand still, and for how long. Those that need no watch are forgotten."""
        standing = []
        for side, before in list(self.pairs.items()):
            progress = side.progress(now_ms)
            if progress is None:
                del self.pairs[side]
            elif before is None or before[0] != progress:
                self.pairs[side] = (progress, now_ms)
            elif now_ms - before[1] >= min(LEFT_MS, self.stuck_ms):
                standing.append((side, now_ms - before[1]))
        return standing

    def is_stuck(self, side: WatchedPair, for_ms: int, now_ms: int) -> bool:
        """End a pair whose broker hangs; False if it has more time."""
        if for_ms < self.stuck_ms or not side.awaits_broker:
            return False
        self.end_stuck(side, now_ms)
        return True

    def end_stuck(self, side: WatchedPair, now_ms: int) -> None:
        """End a pair whose broker hangs."""
        assert side.pair is not None
        node_id = side.pair.state.identity.node_id
        node = BOOTSTRAP if node_id is None else str(node_id)
        self.stuck[node] += 1
        self.stuck_log.write(
            logging.WARNING,
            now_ms,
            "a broker stands still: its connections are closed, gateway.upstream.stuck.ms is over",
            node=node,
            broker=side.broker_address,
            after_ms=self.stuck_ms,
        )
        why = f"the broker has taken or answered nothing for {self.stuck_ms} ms"
        side.pair.fail(PairFailure(Cause.UPSTREAM_STUCK, why))

    def check_ending(self, now_ms: int) -> None:
        """End connections whose peers take nothing."""
        for end, (limit_ms, before) in list(self.ending.items()):
            progress = (end.unsent_bytes(),)
            if before is None or before[0] != progress:
                self.ending[end] = (limit_ms, (progress, now_ms))
            elif now_ms - before[1] >= limit_ms:
                end.abort()


def left(sides: Sequence[WatchedPair]) -> list[WatchedPair]:
    """The sides whose clients have closed or reset their connections."""
    poll, by_descriptor = select.poll(), {}
    for side in sides:
        descriptor = side.descriptor()
        if descriptor >= 0:
            by_descriptor[descriptor] = side
            poll.register(descriptor, HUNG_UP)
    return [by_descriptor[descriptor] for descriptor, _ in poll.poll(0)] if by_descriptor else []
