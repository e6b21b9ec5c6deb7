"""The connection of a pair to its broker."""

from __future__ import annotations

import asyncio
from typing import Any

from odradek.net.pairs.socket_end import SocketEnd


class UpstreamSide(SocketEnd):
    """The connection of a pair to its broker. It tells the other end what happens."""

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.attached(transport)

    @property
    def about(self) -> dict[str, Any]:
        return {} if self.other is None else self.other.about

    def is_slow(self) -> None:
        if self.other is not None:
            self.other.is_slow()

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.from_upstream(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.upstream_ended(exc is not None)
        self.lost()

    def give_up(self) -> None:
        if self.other is not None:
            self.other.give_up()
