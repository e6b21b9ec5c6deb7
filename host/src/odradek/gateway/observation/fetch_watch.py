"""What all clients of a gateway read, also those whose connections have ended a moment ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from odradek.gateway.observation.client_account import ClientAccount
from odradek.gateway.observation.fetch_reads import FetchReads
from odradek.lag.readers import Reader, Reading
from odradek.waiting.clock import Clock


class FetchWatch:
    """Follows the Fetch requests of all pairs.

    Args:
        clock: The time.
        observer: The name of the gateway.
    """

    def __init__(self, clock: Clock, observer: str) -> None:
        self.clock = clock
        self.observer = observer
        self.closed: deque[tuple[Reader, Reading]] = deque()
        """In the order of their ends."""

    def opened(self) -> FetchReads:
        """The requests of a connection that sends its first one."""
        return FetchReads(self.clock)

    def ended(self, account: ClientAccount, reads: FetchReads) -> None:
        """A connection has ended. What it read is shown for a while."""
        reading = reads.look()
        reading.closed_ms = self.clock.monotonic_ms()
        self.forget()
        if reading.offsets:
            self.closed.append((self.reader(account), reading))

    def forget(self) -> None:
        """Forget connections that have ended some time ago."""
        now_ms = self.clock.monotonic_ms()
        while self.closed and self.closed[0][1].is_over(now_ms):
            self.closed.popleft()

    def reader(self, account: ClientAccount) -> Reader:
        """A client as a reader."""
        key = account.key
        return Reader(
            key.client_id,
            key.address,
            account.group_id,
            key.software_name,
            key.software_version,
            key.principal,
            self.observer,
        )

    def readings(self, accounts: Iterable[ClientAccount]) -> Iterator[tuple[Reader, Reading]]:
        """What each connection reads now, one after the other."""
        self.forget()
        yield from list(self.closed)
        for account in accounts:
            for reads in [pair.fetches for pair in account.pairs if pair.fetches is not None]:
                yield self.reader(account), reads.look()
