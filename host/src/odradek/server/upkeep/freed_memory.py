"""Memory of clients that have left goes back to the system.

The allocator keeps what is freed, see `keep_buffers`, and what many connections leave is scattered over its
memory: a process that has lost ten thousand connections with TLS would go on holding 200 MB.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Final

from odradek.clock import Clock, Timer
from odradek.quota.connection_quotas import ConnectionQuotas

LOOK_MS: Final = 10_000
KEPT_BYTES: Final = 16 << 20
MANY: Final = 1_000
"""Connections, of 2 to 25 kB each."""


class FreedMemory:
    """Gives memory back after many connections have left and stayed away.

    Clients that lost their connections come back within seconds and need the same memory again, so the
    number has to be low at two looks. Giving back stops the loop for ten milliseconds for each 100 MB.

    Args:
        connections: Their number now.
        clock: The time.
        timer: Looks again and again.
        give_back: Gives back what is free, `give_back_freed`.
    """

    def __init__(
        self,
        connections: Callable[[], int],
        clock: Clock,
        timer: Timer,
        give_back: Callable[[], object],
    ) -> None:
        self.connections = connections
        self.clock = clock
        self.timer = timer
        self.give_back = give_back
        self.most = self.last = connections()
        """The most connections since memory was given back, and those of the last look."""
        self.plan()

    @classmethod
    def of_process(cls, quotas: ConnectionQuotas, clock: Clock, timer: Timer) -> FreedMemory:
        """That of this process, by the connections that the quotas count."""
        return cls(lambda: quotas.total, clock, timer, give_back_freed)

    def plan(self) -> None:
        self.timer.schedule(self.clock.monotonic_ms() + LOOK_MS, self.look)

    def look(self) -> None:
        """Give back if that is due."""
        now = self.connections()
        if self.most - max(now, self.last) >= MANY:
            self.give_back()
            self.most = now
        self.most, self.last = max(self.most, now), now
        self.plan()


def give_back_freed() -> None:
    """Give the system the freed memory that `keep_buffers` keeps, except for the next pushes' share.

    musl's allocator needs no such call, and has none.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(ctypes.c_size_t(KEPT_BYTES))
