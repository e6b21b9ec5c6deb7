"""Threads for work that blocks on a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from odradek.waiting.deferred import offload_inline


class FileThreads:
    """Threads for work that blocks on a disk."""

    def __init__(self, threads: int = 2) -> None:
        self.executor = ThreadPoolExecutor(threads, thread_name_prefix="log-files")
        self.unfinished = 0
        """Work whose outcome is not known on the loop. Read it there."""

    def offload(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Run work on a thread; see `Offload`."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self.executor, offload_result, work)
        self.unfinished += 1
        future.add_done_callback(partial(self.finish, done))

    def finish(self, done: Callable[[Any], None], finished: asyncio.Future[Any]) -> None:
        self.unfinished -= 1
        done(finished.result())

    async def close(self) -> None:
        """Wait for the work that was begun."""
        await asyncio.to_thread(self.executor.shutdown)


def offload_result(work: Callable[[], Any]) -> Any:
    results: list[Any] = []
    offload_inline(work, results.append)
    return results[0]
