"""Connections whose clients have left: they are ended a few at a time.

Many clients leave together, for example when a load balancer stops. To end a connection, close its socket and
free its transport takes 10 to 25 µs, and the event loop would do that for all of them in one pass. So a
connection only joins a queue when the end of its client is read. New connections are accepted when the queue
is empty: a client that comes back finds its former connection gone, with its place and its client instance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

ENDED_AT_ONCE: Final = 16
"""Connections that are ended in one pass of the loop: a quarter of a millisecond, over TLS half of one."""


class Departures:
    """The connections to end, of all listeners of a host.

    Args:
        soon: Does a piece of work in one of the next passes of the loop; see `Turns.soon`.
    """

    def __init__(self, soon: Callable[[Callable[[], None]], None]) -> None:
        self.soon = soon
        self.waiting: deque[Callable[[], object]] = deque()

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, end: Callable[[], object]) -> None:
        """End a connection in one of the next passes.

        Args:
            end: Closes it.
        """
        self.waiting.append(end)
        if len(self.waiting) == 1:
            self.soon(self.end_some)

    def end_some(self) -> None:
        """End a few; the others wait for the next pass."""
        try:
            self.end(ENDED_AT_ONCE)
        finally:
            if self.waiting:
                self.soon(self.end_some)

    def end(self, most: int) -> None:
        """End the first ones."""
        for _ in range(min(most, len(self.waiting))):
            self.waiting.popleft()()
