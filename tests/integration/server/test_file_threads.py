"""Files are flushed by threads, and the loop learns of the end."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from odradek.server.config import load_config
from odradek.server.host import Host
from odradek.server.upkeep.file_threads import FileThreads
from support.hosts import LOOPBACK

PASSES = 10
"""More passes of the loop than a timed action that is due has to wait for."""


def test_files_are_flushed_on_other_threads() -> None:
    seen: list[Any] = []

    async def scenario() -> None:
        threads = FileThreads()
        done = asyncio.Event()

        def finished(result: Any) -> None:
            seen.extend((result, threading.current_thread() is threading.main_thread()))
            done.set()

        threads.offload(lambda: threading.current_thread() is threading.main_thread(), finished)
        await done.wait()
        await threads.close()

    asyncio.run(scenario())

    assert seen == [False, True]


def test_no_timed_action_needs_a_file_thread_after_the_threads_have_ended(tmp_path: Path) -> None:
    config = load_config(None, [f"listeners={LOOPBACK}", f"data.dir={tmp_path / 'data'}"])
    ended: list[str] = []

    async def scenario() -> None:
        host = Host(config)
        await host.start()
        close = host.file_threads.close

        async def closed() -> None:
            await close()
            ended.append("threads")
            host.timer.schedule(host.clock.monotonic_ms(), lambda: ended.append("timed action"))
            for _ in range(PASSES):
                await asyncio.sleep(0)

        host.file_threads.close = closed  # type: ignore[method-assign]
        await host.stop()

    asyncio.run(scenario())

    assert ended == ["threads"]
