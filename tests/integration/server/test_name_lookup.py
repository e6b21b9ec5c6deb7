"""Names of hosts are resolved by a thread, not by the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odradek.net.host_lookup import look_up


def test_a_host_is_looked_up_without_blocking_the_loop() -> None:
    async def look() -> tuple[list[object], list[object]]:
        found: list[object] = []
        done = asyncio.Event()

        def take(addresses: Sequence[str]) -> None:
            found.extend(addresses)
            done.set()

        look_up("localhost", take)
        at_once = list(found)
        await asyncio.wait_for(done.wait(), 10)
        return at_once, found

    at_once, found = asyncio.run(look())

    assert at_once == []
    assert "127.0.0.1" in found
