"""The starts and stops of one host, all on the same ports with the same data."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import entry_points

import odradek
from odradek.broker.broker import Broker
from odradek.broker.broker_settings import Endpoint
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Route
from odradek.hosting.plugin_manager import BUILTIN, GROUP, HostPluginManager, load_plugins
from odradek.net.listener import ListenerAddress
from odradek.programs.config import HostConfig
from odradek.programs.host import Host
from odradek.testing.host_thread import HostThread
from odradek.testing.virtual_clock import VirtualClock


def installed_plugins(names: Collection[str]) -> HostPluginManager:
    """Load only these plugins, so that other installed plugins do not affect the test."""
    manager = HostPluginManager()
    for name in BUILTIN.keys() & set(names):
        manager.add(name, BUILTIN[name], GROUP, odradek.__version__, builtin=True)
    if names:
        for entry_point in entry_points(group=GROUP):
            if entry_point.name in names:
                manager.load(entry_point)
    if manager.installed.keys() >= set(names):
        return manager
    return load_plugins()  # one is missing: with all of them loaded, the host's error lists them


class HostLifecycle:
    """Starts, stops and kills one host.

    Args:
        config: Its configuration.
        clock: Its clock; None for the machine's.
        plugins: Names of the plugins to load.
        watch: Called on the host's loop with each created host, before it listens.
        dispatcher: Makes what answers the requests of each host.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: VirtualClock | None,
        plugins: Collection[str],
        watch: Callable[[Host], object],
        dispatcher: Callable[[Broker, dict[int, Route]], Dispatcher],
    ) -> None:
        self.config, self.clock, self.plugins = config, clock, plugins
        self.watch, self.dispatcher = watch, dispatcher
        self.thread: HostThread
        self.running = False
        self.reserved: list[socket.socket] = []
        """Sockets that keep the ports of a stopped host from other programs."""

    def start(self) -> None:
        """Start the host.

        Raises:
            ConfigError: The configuration is not usable. Nothing is left running.
        """
        plugins = installed_plugins(self.plugins)
        self.thread = HostThread(self.config, self.clock, plugins, self.watch, self.dispatcher)
        self.release()
        self.thread.start()
        self.running = True
        bound = [replace(each.address, port=each.bound_port) for each in self.thread.host.listeners]
        self.config = replace(self.config, listeners=tuple(bound))

    def stop(self) -> None:
        """Stop the host and keep its ports. Does nothing if it does not run.

        Raises:
            RuntimeError: The host does not end in time.
        """
        if not self.running:
            return
        self.running = False
        self.thread.stop()
        for address in self.config.listeners:
            self.reserve(address.host, address.port)

    def kill(self) -> None:
        """Break all connections, then stop without saving or answering anything more."""
        if self.running:
            self.thread.call(lambda: crash(self.thread.host))
            self.stop()

    def restart(self) -> None:
        """Stop the host if it runs, and start it again."""
        self.stop()
        self.start()

    @property
    def advertised(self) -> Endpoint:
        """The address that clients get for the first listener."""
        return self.config.advertised.get(self.config.listeners[0].name) or Endpoint(*self.thread.address)

    def advertise(self, name: str, host: str, port: int) -> None:
        """Change the address that clients get for a listener, also of later starts.

        Raises:
            ConfigError: There is no such listener.
        """
        others = (each for each in self.config.advertised_listeners or () if each.name != name)
        config = replace(self.config, advertised_listeners=(*others, ListenerAddress(name, host, port)))
        config.check()
        self.config = config
        if self.running:
            endpoints = self.thread.host.broker.endpoints
            self.thread.call(lambda: endpoints.update({name: Endpoint(host, port)}))

    def close(self) -> None:
        """Stop the host for good."""
        try:
            self.stop()
        finally:
            self.release()

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


def crash(host: Host) -> None:
    """Break all connections of a host and leave its logs to be recovered by the next start."""
    host.spine.hurry()
    for listener in host.listeners:
        if listener.acceptor is not None:
            listener.acceptor.close()
        for channel in list(listener.channels):
            channel.abort()
