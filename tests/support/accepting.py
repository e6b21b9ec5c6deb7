"""The end of asyncio servers in tests: no connection is left unclosed because it came at the last moment."""

from __future__ import annotations

import asyncio

TURNS = 4
"""Of the loop, from the one that finds a waiting connection to the one after ``connection_made``."""


async def waiting_connections_are_made() -> None:
    """Await this before the end of a server's listening, when its clients have ended.

    A server of asyncio (3.11) that is closed between a connection's acceptance and its transport
    leaves both unclosed.
    """
    for _ in range(TURNS):
        await asyncio.sleep(0)
