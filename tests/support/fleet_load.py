"""Clients that push numbered payloads to hosts that come and go."""

from __future__ import annotations

import asyncio
import threading
from typing import Self

from contrib.fleet.behavior import Client, mixed
from contrib.fleet.fleet import Fleet

from odradek.client.address import addresses
from support.spooling import payload
from support.waiting import wait_until

PATIENCE_S = 90.0
CLIENTS = 40
SOME = 80
"""Pushes that are accepted in each phase."""


class Load:
    """A fleet in a thread, whose pushes are numbered. A context manager."""

    def __init__(self, *bootstrap: str, seconds: float = PATIENCE_S * 2) -> None:
        self.numbers: dict[int, int] = {}
        self.next = 0
        self.accepted: set[str] = set()
        self.brokers = addresses(",".join(bootstrap))
        self.fleet = Fleet(
            self.brokers,
            mixed({"java": 1, "librdkafka": 1}, CLIENTS),
            CLIENTS,
            self.numbered,
            settled=True,
            on_answer=self.answered,
        )
        self.seconds = seconds
        self.thread = threading.Thread(target=lambda: asyncio.run(self.live()))

    async def live(self) -> None:
        self.loop = asyncio.get_running_loop()
        await self.fleet.run(self.seconds)

    def numbered(self, client: Client, now_ns: int) -> bytes:
        self.next += 1
        self.numbers[client.number] = self.next
        return payload(self.next)

    def answered(self, client: Client, error: int, last: bool) -> None:
        if not error:
            self.accepted.add(f"push.{self.numbers[client.number]}")

    def some(self) -> None:
        """Wait until more pushes are accepted."""
        goal = len(self.accepted) + SOME
        wait_until(lambda: len(self.accepted) >= goal, lambda: self.fleet.tally, PATIENCE_S)

    def at(self, *bootstrap: str) -> None:
        """Tell clients where to connect when their connection is lost."""
        self.brokers[:] = addresses(",".join(bootstrap))

    def move(self, *bootstrap: str) -> None:
        """Let all clients connect there now."""
        self.at(*bootstrap)
        goal = self.fleet.tally.connected + CLIENTS
        self.loop.call_soon_threadsafe(self.fleet.storm)
        wait_until(lambda: self.fleet.tally.connected >= goal, lambda: self.fleet.tally, PATIENCE_S)

    def stop(self) -> None:
        """Wait for the last answers."""
        self.fleet.over = True
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
