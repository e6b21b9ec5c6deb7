"""Requests of one user are answered a few at a time: costly ones of one user leave time for the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from starlette.types import Message, Send

WAIT_S: Final = 5.0
"""A request waits so long for an earlier one of its user to end."""
PIECE_BYTES: Final = 64 << 10


class NoTurn(Exception):
    """A request has waited in vain."""


class Turns:
    """Gives requests their turn. It belongs to the loop of the server; users without requests take no memory.

    Args:
        most: Requests of one user that are answered at once.
        wait_s: The time that a request waits for its turn.
    """

    def __init__(self, most: int, wait_s: float = WAIT_S) -> None:
        self.most = most
        self.wait_s = wait_s
        self.lines: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Wait for a turn; it lasts until the body ends.

        Raises:
            NoTurn: The earlier requests of the user take too long.
        """
        line = self.lines.setdefault(user, asyncio.Semaphore(self.most))
        try:
            async with asyncio.timeout(self.wait_s):
                await line.acquire()
        except TimeoutError:
            raise NoTurn from None
        try:
            yield
        finally:
            line.release()


def in_pieces(send: Send) -> Send:
    """Send the body of an answer piece by piece: a turn ends when its reader has almost all of it."""

    async def sent(message: Message) -> None:
        body = memoryview(message.get("body", b""))
        while len(body) > PIECE_BYTES:
            await send({**message, "body": bytes(body[:PIECE_BYTES]), "more_body": True})
            body = body[PIECE_BYTES:]
        await send({**message, "body": bytes(body)} if "body" in message else message)

    return sent
