"""A host that runs on its own event loop in its own thread, and may be started again."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from odradek.hosting.plugin_manager import HostPluginManager
from odradek.hosting.watched_call import place_of_thread
from odradek.net.listener_settings import EVERY_ADDRESS
from odradek.programs.config import HostConfig
from odradek.programs.host import Host
from odradek.waiting.clock import Clock

START_TIMEOUT_S = 40
"""Longer than a start waits for plugins that do not listen."""
LEAVE_TIMEOUT_S = 5
"""For a start that nobody waits for any more."""
STOP_TIMEOUT_S = 30
CALL_TIMEOUT_S = 10
Result = TypeVar("Result")


class HostThread:
    """Starts a host and stops it; `close` leaves no task, thread, socket or file. Each start has the same
    ports and data.

    Args:
        config: Configuration of the host.
        clock: Clock of the host; None for the machine's.
        plugins: The installed plugins; None to discover them.
        before_start: Called on the host's loop with each created host, before it listens.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: Clock | None = None,
        plugins: HostPluginManager | None = None,
        before_start: Callable[[Host], object] = lambda _host: None,
    ) -> None:
        self.config = config
        self.host_clock, self.host_plugins, self.before_start = clock, plugins, before_start
        self.host: Host
        self.address: tuple[str, int]
        """Host and port of the first listener; the loopback address if it listens on all addresses."""
        self.loop: asyncio.AbstractEventLoop
        self.ready: Future[None]
        self.ended: asyncio.Event
        self.failure: BaseException | None = None
        self.thread: threading.Thread
        self.running = False
        self.reserved: list[socket.socket] = []
        """Sockets that keep the ports of a stopped host from other programs."""

    @property
    def bootstrap(self) -> str:
        """The value for a client's ``bootstrap.servers``."""
        return "{}:{}".format(*self.address)

    def start(self) -> None:
        """Start the host and return once it accepts connections.

        Raises:
            ConfigError: The configuration is not usable. Nothing is left running.
            TimeoutError: A plugin hangs. Its thread ends once it returns.
        """
        self.release()
        self.ready = Future()
        self.thread = threading.Thread(target=self.run, name="odradek-host", daemon=True)
        self.thread.start()
        try:
            self.ready.result(START_TIMEOUT_S)
        except BaseException as error:  # Ctrl-C may arrive before the host is ready
            wait([self.ready], LEAVE_TIMEOUT_S)
            where = place_of_thread(self.thread.ident or 0)
            if self.ready.done() and self.ready.exception() is not None:
                self.thread.join(STOP_TIMEOUT_S)
            elif where:  # the thread ends when the plugin has returned
                self.loop.call_soon_threadsafe(self.ended.set)
            else:
                self.end()
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"the host has not started after {START_TIMEOUT_S} s{where}") from None
            raise
        self.running = True
        bound = [replace(each.address, port=each.bound_port) for each in self.host.listeners]
        self.config = replace(self.config, listeners=tuple(bound))

    def run(self) -> None:
        """The body of the thread."""
        try:
            asyncio.run(self.live())
        except BaseException as error:  # noqa: BLE001  raised again by start() or stop()
            if self.ready.done():
                self.failure = error
            else:
                self.ready.set_exception(error)

    def make(self) -> Host:
        """The host, on its loop, not started."""
        return Host(self.config, self.host_clock, self.host_plugins)

    async def live(self) -> None:
        """Run the host from its start to its end."""
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        self.host = self.make()
        try:
            self.before_start(self.host)
            await self.host.start()
            self.address = self.listening_on()
            self.ready.set_result(None)
            await self.ended.wait()
        finally:
            await self.host.stop()

    def listening_on(self) -> tuple[str, int]:
        listener = self.host.listeners[0]
        host = listener.address.host
        return "127.0.0.1" if host in EVERY_ADDRESS else host, listener.bound_port

    def call(self, function: Callable[[], Result]) -> Result:
        """Call a function on the host's loop and return its result.

        Raises:
            RuntimeError: The host has stopped.
        """
        if threading.current_thread() is self.thread:
            return function()

        async def on_loop() -> Result:
            return function()

        return self.await_on_loop(on_loop)

    def await_on_loop(self, function: Callable[[], Coroutine[None, None, Result]]) -> Result:
        """Await a coroutine on the host's loop, from another thread, and return its result.

        Raises:
            RuntimeError: The host has stopped.
        """
        if not self.thread.is_alive():
            raise RuntimeError("the host has stopped")
        return asyncio.run_coroutine_threadsafe(function(), self.loop).result(CALL_TIMEOUT_S)

    # Stops

    def stop(self) -> None:
        """Stop the host in order: requests that wait are answered, then all connections close.

        `restart` starts it again. Until then, its port refuses connections.

        Raises:
            RuntimeError: The host does not end in time.
        """
        if self.running:
            self.running = False
            self.end()
            for address in self.config.listeners:
                self.reserve(address.host, address.port)

    def kill(self) -> None:
        """Stop the host as a crash does: connections break at once, and waiting requests get no answer.

        What the host has acknowledged survives; the next start recovers the partitions. `restart` starts it
        again.
        """
        if self.running:
            self.call(lambda: crash(self.host))
            with silent():
                self.stop()

    def restart(self) -> None:
        """Start the host again on the same port with the same data, after stopping it if it runs.

        Topics, records, offsets, subscriptions, quotas and users survive; client instances, group members and
        fetch sessions do not, as with every broker. Faults and the recorded requests and pushes stay.
        """
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop the host for good."""
        try:
            self.stop()
        finally:
            self.release()

    def end(self) -> None:
        """End the thread."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join(STOP_TIMEOUT_S)
        if self.thread.is_alive():
            raise RuntimeError(f"the host has not stopped after {STOP_TIMEOUT_S} s")
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def reserve(self, host: str, port: int) -> None:
        """Take a port without listening, so that the kernel does not give it to another program.

        Without it a restart would fail now and then, when tests run in parallel.
        """
        reserved = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self.reserved.append(reserved)
        with suppress(OSError):  # a host with several addresses: the restart will say if the port is gone
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((host, port))

    def release(self) -> None:
        while self.reserved:
            self.reserved.pop().close()


@contextmanager
def silent() -> Iterator[None]:
    """Let nothing of the host's be logged in the body: a host that is killed tells nobody what it left."""
    log = logging.getLogger("odradek")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


def crash(host: Host) -> None:
    """Break all connections of a host and leave its logs to be recovered by the next start."""
    host.spine.hurry()
    for listener in host.listeners:
        if listener.acceptor is not None:
            listener.acceptor.close()
        for channel in list(listener.channels):
            channel.abort()
