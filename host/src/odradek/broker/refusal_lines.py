"""Limits the log lines about the refusals of each client, and counts those that are not logged."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Final

from odradek.waiting.clock import Clock, Timer

INTERVAL_MS: Final = 60_000
MOST_CLIENTS: Final = 1_000
"""Clients whose refusals are counted at a time."""


@dataclass(slots=True)
class Window:
    """The refusals of one client in a minute."""

    ends_ms: int
    written: int = 0
    unlogged: int = 0


class RefusalLines:
    """The refusals of a minute, by client.

    Args:
        log: Gets a line at the end of a minute with refusals that were not logged.
        field: The field of that line that names the client.
        most: Lines about one client in a minute.
        clock: The time.
        timer: Ends the minutes.
    """

    def __init__(self, log: logging.Logger, field: str, most: int, clock: Clock, timer: Timer) -> None:
        self.log = log
        self.field = field
        self.most = most
        self.clock = clock
        self.timer = timer
        self.windows: OrderedDict[str, Window] = OrderedDict()

    def may_write(self, client: str) -> bool:
        """Whether another refusal of this client may be logged now. If not, it is counted."""
        now_ms = self.clock.monotonic_ms()
        window = self.windows.get(client)
        if window is None or now_ms >= window.ends_ms:
            self.end(client)
            if len(self.windows) >= MOST_CLIENTS:
                self.end(next(iter(self.windows)))
            window = self.windows[client] = Window(now_ms + INTERVAL_MS)
        if window.written < self.most:
            window.written += 1
            return True
        if window.unlogged == 0:
            self.timer.schedule(window.ends_ms, partial(self.end_of, client, window))
        window.unlogged += 1
        return False

    def end_of(self, client: str, window: Window) -> None:
        """The minute of a window is over."""
        if self.windows.get(client) is window:
            self.end(client)

    def end(self, client: str) -> None:
        """Log the number of refusals of a client that were not logged, if there are any."""
        window = self.windows.pop(client, None)
        if window is not None and window.unlogged:
            self.log.info(
                "refusals that were not logged",
                extra={self.field: client, "outcome": "refused", "count": window.unlogged},
            )
