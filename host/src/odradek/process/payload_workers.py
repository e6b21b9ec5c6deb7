"""Open large payloads and record batches in separate processes, so that no request holds up the loop.

A worker (`worker_process`) exchanges pickles with the host over its standard input and output, each preceded
by its length. The host starts it with the first work and restarts it after a crash; the request that it was
working on fails. Threads do not help: protobuf holds the interpreter's lock while it parses (measured).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from odradek.process.worker_process import LENGTH
from odradek.process.worker_settings import WorkerSettings

log = logging.getLogger(__name__)

Done = Callable[[Any], None]


class Work(Protocol):
    """Work that can be pickled, and its result."""

    @property
    def size_bytes(self) -> int:
        """The memory that the work takes while it waits."""

    def __call__(self) -> Any:
        """The result. An exception is passed on."""


class WorkerFailed(Exception):
    """The host could not open a payload: a worker crashed, or too many payloads wait."""


class PayloadWorkers:
    """Worker processes and the queue of payloads that wait for them, oldest first."""

    def __init__(self, workers: int, settings: WorkerSettings | None = None) -> None:
        self.idle = workers
        self.settings = settings or WorkerSettings()
        self.queue: deque[tuple[Work, Done]] = deque()
        self.queued_bytes = 0
        self.processes: list[asyncio.subprocess.Process] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.taken = 0
        """Works that were queued so far."""
        self.refused = 0
        """Works that found no room in the queue."""

    def offload(self, work: Work, done: Done) -> None:
        """Open a payload; call ``done`` on the loop with the bytes or the error."""
        bytes_then, limits = self.queued_bytes + work.size_bytes, self.settings
        if len(self.queue) >= limits.queue_max_requests or bytes_then > limits.queue_max_bytes:
            self.refused += 1
            done(WorkerFailed(f"{len(self.queue)} payloads are waiting"))
            return
        self.taken += 1
        self.queue.append((work, done))
        self.queued_bytes = bytes_then
        if self.idle > 0:
            self.idle -= 1
            task = asyncio.get_running_loop().create_task(self.work_off(), name="payload-worker")
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def work_off(self) -> None:
        """Feed one process until the queue is empty."""
        try:
            while self.queue:
                work, done = self.queue.popleft()
                self.queued_bytes -= work.size_bytes
                done(await self.open(work))
        finally:
            self.idle += 1

    async def open(self, work: Work) -> Any:
        """Open one payload; return its bytes or the error."""
        process = None
        try:
            process = self.processes.pop() if self.processes else await self.start()
            assert process.stdin is not None
            assert process.stdout is not None
            message = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
            process.stdin.write(LENGTH.pack(len(message)) + message)
            await process.stdin.drain()
            (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            answer = pickle.loads(await process.stdout.readexactly(size))  # noqa: S301  our own process wrote it
        except Exception as error:  # noqa: BLE001  the push is answered, whatever goes wrong with its worker
            log.warning("payload worker failed; the next push starts a new one", extra={"error": repr(error)})
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            return WorkerFailed(repr(error))
        self.processes.append(process)
        return answer

    async def start(self) -> asyncio.subprocess.Process:
        """Start a process. It ends with its standard input, so it also ends when the host is killed."""
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "odradek.process.worker_process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def close(self) -> None:
        """Finish the payloads being opened and end the processes."""
        self.queue.clear()
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=5)
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
        self.processes.clear()
