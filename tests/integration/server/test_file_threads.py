"""Files are flushed by threads, and the loop learns of the end."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from odradek.server.upkeep.file_threads import FileThreads


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
