"""The connection of a pair to its broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.server.gateway.pair_bytes import PairBytes
from odradek.server.gateway.socket_end import SocketEnd


class UpstreamSide(SocketEnd):
    """The connection of a pair to its broker.

    Args:
        received: Takes what the broker sends.
        ended: Called when the connection is gone, with True if it was reset.
        slow: Called when the broker does not take what the client has sent.
        pool: The memory of all pairs.
    """

    __slots__ = ("ended", "received", "slow")

    def __init__(
        self,
        received: Callable[[bytes], None],
        ended: Callable[[bool], None],
        slow: Callable[[], None],
        pool: PairBytes,
    ) -> None:
        super().__init__(pool)
        self.received = received
        self.ended = ended
        self.slow = slow

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attached(transport)

    def is_slow(self) -> None:
        self.slow()

    def data_received(self, data: bytes) -> None:
        self.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended(exc is not None)
        self.lost()
        if self.other is not None:
            self.other.other = None
            self.other = None

    def give_up(self) -> None:
        if self.other is not None:
            self.other.give_up()
