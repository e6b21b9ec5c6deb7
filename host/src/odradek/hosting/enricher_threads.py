"""Threads for an enricher that blocks, and a loop on a thread for the awaitables of its answers.

They start with the first answer that needs them. The threads are daemons: a call that hangs does not keep the
program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import Any, Final

from odradek.hosting.plugin_loop import plugin_loop
from odradek.plugin.later import Later

log = logging.getLogger(__name__)

CALLS: Final = 8
"""Calls of an enricher that blocks at one time."""
MAX_QUEUED: Final = 1_000


class EnricherThreads:
    """The `odradek.telemetry.client_labels.Aside` of one enricher.

    Args:
        name: Its name.
        host_loop: The host's loop.
    """

    def __init__(self, name: str, host_loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.host_loop = host_loop
        self.queue: Queue[tuple[Callable[[], Any], Later] | None] = Queue(MAX_QUEUED)
        self.threads: list[Thread] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.tasks: dict[Later, asyncio.Task[None]] = {}

    # on the host's loop

    def call(self, blocking: Callable[[], Any]) -> Later:
        """Call on one of the threads.

        Raises:
            queue.Full: Too many calls wait.
        """
        if not self.threads:
            for _ in range(CALLS):
                self.start(self.take_calls)
        later = Later()
        self.queue.put_nowait((blocking, later))
        return later

    def run(self, later: Later) -> None:
        """Run its awaitable on the loop."""
        if self.loop is None:
            self.loop = plugin_loop(self.name)
            self.start(self.live, self.loop)
        self.loop.call_soon_threadsafe(self.begin, self.loop, later)

    def cancel(self, later: Later) -> None:
        """Cancel its awaitable if that is still running."""
        if self.loop is not None and later in self.tasks:
            self.loop.call_soon_threadsafe(self.end, later)

    def close(self, timeout_s: float) -> None:
        """End the threads. Calls that wait are dropped."""
        with contextlib.suppress(RuntimeError):
            if self.loop is not None:
                self.loop.call_soon_threadsafe(self.loop.stop)
        with contextlib.suppress(Empty):  # the threads take calls meanwhile
            while True:
                self.queue.get_nowait()
        for _ in range(min(CALLS, len(self.threads))):
            self.queue.put_nowait(None)
        deadline_s = monotonic() + timeout_s
        for thread in self.threads:
            thread.join(max(deadline_s - monotonic(), 0))
        if any(thread.is_alive() for thread in self.threads):
            told = "the enricher of plugin %s did not stop in time, leaving its threads"
            log.error(told, self.name, extra={"plugin": self.name})

    def start(self, target: Callable[..., None], *arguments: object) -> None:
        """Start a thread."""
        name = f"odradek-enricher-{self.name}"
        self.threads.append(Thread(target=target, args=arguments, name=name, daemon=True))
        self.threads[-1].start()

    # on any thread

    def on_loop(self, action: Callable[[], object]) -> None:
        """Run an action on the host's loop, unless that has ended."""
        with contextlib.suppress(RuntimeError):
            self.host_loop.call_soon_threadsafe(action)

    # on the threads

    def take_calls(self) -> None:
        """Call what waits, one after the other."""
        while (item := self.queue.get()) is not None:
            blocking, later = item
            try:
                found = blocking()
            except BaseException as error:  # noqa: BLE001  neither an error nor sys.exit() ends the thread
                later.fail(error)
            else:
                later.set(found)
            del item, blocking, later  # and do not hold them while nothing waits

    def live(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until the close."""
        try:
            loop.run_forever()
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def begin(self, loop: asyncio.AbstractEventLoop, later: Later) -> None:
        """Start the task of an awaitable."""
        task = self.tasks[later] = loop.create_task(self.wait(later))
        task.add_done_callback(lambda _: self.tasks.pop(later, None))

    def end(self, later: Later) -> None:
        """Cancel it."""
        if (task := self.tasks.get(later)) is not None:
            task.cancel()

    async def wait(self, later: Later) -> None:
        """Give the outcome of an awaitable to its answer."""
        assert later.awaitable is not None
        try:
            found = await later.awaitable
        except asyncio.CancelledError as error:
            later.fail(error)
            raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  plugins' code
            later.fail(error)
        else:
            later.set(found)
