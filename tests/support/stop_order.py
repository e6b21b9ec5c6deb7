"""The order in which a host, or forwarders beside a topic, stop."""

from __future__ import annotations

import asyncio

from odradek.programs.forward import Forward
from odradek.programs.host import Host

PASSES = 10
"""More passes of the loop than a timed action that is due has to wait for."""


def watch_stop(process: Host | Forward, ended: list[str]) -> None:
    """Note the end of the file threads, and a timed action that is due just after it, if that runs."""
    spine = process.spine
    threads = spine.file_threads
    close = threads.close

    async def closed() -> None:
        await close()
        ended.append("threads")
        spine.timer.schedule(spine.clock.monotonic_ms(), lambda: ended.append("timed action"))
        for _ in range(PASSES):
            await asyncio.sleep(0)

    threads.close = closed  # type: ignore[method-assign]
