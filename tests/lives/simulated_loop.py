"""An event loop without sockets, threads or waiting: time jumps to whatever is due next.

Work for threads runs in a later turn of the loop, connections are `wires`. So everything that happens follows
from one source of chance, and a day takes as long as its events.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import time
from asyncio import events
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any
from weakref import WeakSet

from lives.wires import End, Listening, Wire, WireSocket, connected

DIAL_S = 0.002
"""A connection to a port takes so long."""


class StoodStill(Exception):
    """Nothing can happen any more, and somebody still waits."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop of one life.

    Args:
        chance: Decides how long work takes and how bytes travel.
    """

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.chance = chance
        self.now_s = 10_000.0
        self.longest: tuple[int, str] = (0, "")
        """CPU of the longest turn in nanoseconds, and what it was."""
        self.measured = True
        self.due: list[tuple[float, int, asyncio.TimerHandle]] = []
        self.serial = count()
        self.ports: dict[int, Listening] = {}
        self.frozen: dict[int, float] = {}
        """Until when nothing passes to a port or from it, and no connection to it opens."""
        self.client_ports = count(40_000)
        self.ends: WeakSet[End] = WeakSet()
        """Of all connections."""

    def time(self) -> float:
        return self.now_s

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self.due, (when, next(self.serial), handle))
        return handle

    def _run_once(self) -> None:
        due, ready = self.due, self._ready  # type: ignore[attr-defined]
        while due and due[0][2].cancelled():
            heapq.heappop(due)
        if not ready:
            if not due:
                raise StoodStill
            self.now_s = max(self.now_s, due[0][0])
        while due and due[0][0] <= self.now_s:
            ready.append(heapq.heappop(due)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                self.run_handle(handle)

    def run_handle(self, handle: asyncio.Handle) -> None:
        """Run one callback and measure it."""
        self.measured = True
        begun_ns = time.thread_time_ns()
        handle._run()
        took_ns = time.thread_time_ns() - begun_ns
        if took_ns > self.longest[0] and self.measured:
            self.longest = (took_ns, repr(handle))

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """`_run_once` drops it when it is due."""

    def _write_to_self(self) -> None:
        """All threads are this one."""

    def _process_events(self, event_list: object) -> None:
        raise NotImplementedError

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run it in a later turn, which is not measured: it would be another thread's."""
        future: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            self.measured = False
            if future.done():
                return
            try:
                result = func(*args)
            except BaseException as error:  # noqa: BLE001  the caller gets it
                future.set_exception(error)
                return
            if inspect.iscoroutine(result):  # a simulated thread
                task = self.create_task(result)
                task.add_done_callback(lambda done: future.set_result(done.result()))
            else:
                future.set_result(result)

        self.call_later(self.chance.choice((0, 0, 0.001, 0.02)), work)
        return future

    # what listeners and dialers use

    def next_wire(self) -> Wire:
        """How bytes travel on the next connection: as a rule fast and whole."""
        chance = self.chance
        delay_s = chance.choice((0.0, 0.0, 0.0005, 0.02))
        return Wire(delay_s, chance.choice((65_536, 65_536, 65_536, 1_460, 11)))

    def add_reader(  # type: ignore[override]
        self, fd: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        fd.reader = events.Handle(callback, args, self)
        fd.wake(self)

    def remove_reader(self, fd: Any) -> bool:
        found, fd.reader = fd.reader, None
        if found is not None:
            found.cancel()
        return found is not None

    async def connect_accepted_socket(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], sock: WireSocket, **_options: Any
    ) -> tuple[End, Any]:
        protocol = protocol_factory()
        await asyncio.sleep(0)
        end = sock.take()
        end.attach(protocol)
        return end, protocol

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: str | None = None, port: int | None = None, **_: Any
    ) -> tuple[End, Any]:
        assert port is not None
        await asyncio.sleep(DIAL_S)
        while (wait_s := self.frozen.get(port, 0) - self.now_s) > 0:
            await asyncio.sleep(wait_s)
        listening = self.ports.get(port)
        if listening is None:
            raise ConnectionRefusedError(111, "Connection refused")
        end, socket = connected(self, (str(host), port))
        listening.offer(socket, self)
        protocol = protocol_factory()
        end.attach(protocol)
        return end, protocol
