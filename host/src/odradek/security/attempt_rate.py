"""How often the clients of one address may try to authenticate: checking a password takes milliseconds."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from odradek.waiting.clock import Clock

SECOND_MS: Final = 1_000
INSPECTED: Final = 2
"""Addresses that are inspected at each attempt, to forget those that have been quiet."""
NETWORK_GROUPS: Final = 4
"""Groups of 16 bits of an IPv6 address that name its network."""


class AttemptRate:
    """Delays the attempts of an address beyond a number per second; those of other addresses are not delayed.

    Args:
        per_second: Attempts of one address. So many may also come at once.
        clock: The time of the attempts.
    """

    def __init__(self, per_second: int, clock: Clock) -> None:
        self.clock = clock
        self.each_ms = SECOND_MS / per_second
        self.busy_until_ms: OrderedDict[str, float] = OrderedDict()
        """By address: when its attempts so far would end, one after the other."""
        self.delayed = 0
        """Attempts that had to wait."""

    def delay_ms(self, address: str) -> int:
        """Count an attempt, and return how long it has to wait.

        Args:
            address: The client's address as Java prints it.
        """
        address = network_of(address)
        now_ms = self.clock.monotonic_ms()
        until_ms = max(self.busy_until_ms.pop(address, 0), now_ms) + self.each_ms
        self.forget_quiet(now_ms)
        self.busy_until_ms[address] = until_ms
        delay_ms = int(until_ms - now_ms) - SECOND_MS
        if delay_ms <= 0:
            return 0
        self.delayed += 1
        return delay_ms

    def forget_quiet(self, now_ms: int) -> None:
        """Forget addresses whose attempts are over, a few at a time: as many as can be added meanwhile."""
        for _ in range(min(INSPECTED, len(self.busy_until_ms))):
            address, until_ms = self.busy_until_ms.popitem(last=False)
            if until_ms > now_ms:
                self.busy_until_ms[address] = until_ms


def network_of(address: str) -> str:
    """Return the network of 64 bits of an IPv6 address, because one client has all of its addresses; an IPv4
    address as it is.
    """
    return ":".join(address.split(":")[:NETWORK_GROUPS])
