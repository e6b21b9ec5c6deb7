"""A host that runs on its own event loop in its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Route
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.net.listener_settings import EVERY_ADDRESS
from odradek.programs.config import HostConfig
from odradek.programs.host import Host
from odradek.waiting.clock import Clock

START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 30
CALL_TIMEOUT_S = 10
Result = TypeVar("Result")


class HostThread:
    """Starts a host and stops it without leaving a task, thread, socket or file.

    Args:
        config: Configuration of the host.
        clock: Clock of the host; None for the machine's.
        plugins: The installed plugins; None to discover them.
        before_start: Called on the host's loop with the created host, before it listens.
        dispatcher: Makes what answers the host's requests.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: Clock | None = None,
        plugins: HostPluginManager | None = None,
        before_start: Callable[[Host], object] | None = None,
        dispatcher: Callable[[Broker, dict[int, Route]], Dispatcher] = Dispatcher,
    ) -> None:
        self.config, self.clock, self.plugins = config, clock, plugins
        self.before_start, self.dispatcher = before_start, dispatcher
        self.host: Host
        self.address: tuple[str, int]
        """Host and port of the first listener; the loopback address if it listens on all addresses."""
        self.loop: asyncio.AbstractEventLoop
        self.ready: Future[None] = Future()
        self.ended: asyncio.Event
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self.run, name="odradek-host", daemon=True)

    @property
    def bootstrap(self) -> str:
        """The address as ``host:port``."""
        return "{}:{}".format(*self.address)

    def start(self) -> None:
        """Start the host and return once it accepts connections.

        Raises:
            ConfigError: The configuration is not usable. Nothing is left running.
        """
        self.thread.start()
        try:
            self.ready.result(START_TIMEOUT_S)
        except BaseException:
            wait([self.ready], START_TIMEOUT_S)  # Ctrl-C may arrive before the host is ready
            if self.ready.done() and self.ready.exception() is None:
                self.stop()
            else:
                self.thread.join(STOP_TIMEOUT_S)
            raise

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
        return Host(self.config, self.clock, self.plugins, dispatcher=self.dispatcher)

    async def live(self) -> None:
        """Run the host from its start to its end."""
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        self.host = self.make()
        try:
            if self.before_start is not None:
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

        if not self.thread.is_alive():
            raise RuntimeError("the host has stopped")
        return asyncio.run_coroutine_threadsafe(on_loop(), self.loop).result(CALL_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the host and wait for its thread.

        Raises:
            RuntimeError: The thread does not end in time.
        """
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join(STOP_TIMEOUT_S)
        if self.thread.is_alive():
            raise RuntimeError(f"the host has not stopped after {STOP_TIMEOUT_S} s")
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
