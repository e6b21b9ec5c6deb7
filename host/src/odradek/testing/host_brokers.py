"""Several brokers that one host plays, so that a test sees how its clients leave one for another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from zlib import crc32

from odradek.broker.nodes import Node, Nodes
from odradek.net.listener_settings import EVERY_ADDRESS
from odradek.plugin.config import ConfigError

if TYPE_CHECKING:
    from odradek.net.listener import Listener, ListenerAddress
    from odradek.plugin.context import ConnectionContext
    from odradek.programs.host import Host
    from odradek.testing.host_thread import HostThread


class SeveralNodes(Nodes):
    """A node for each listener. Partitions, groups and transactional ids are spread over them by their names.

    What a closed node led goes to the others, and comes back when it opens.
    """

    def __init__(self, host: Host) -> None:
        super().__init__(host.broker.settings.node_id, host.broker.endpoint)
        self.endpoints = host.broker.endpoints
        self.listeners = dict(enumerate(host.listeners, self.node_id))
        for node_id, listener in self.listeners.items():
            listener.node_id = node_id
        self.open = list(self.listeners)

    def all(self, connection: ConnectionContext) -> list[Node]:
        return [self.node(each) for each in self.open]

    def node(self, node_id: int) -> Node:
        endpoint = self.endpoints[self.listeners[node_id].address.name]
        return Node(node_id, endpoint.host, endpoint.port)

    def leader(self, topic: str, partition: int) -> int:
        return self.of(crc32(topic.encode()) + partition)

    def coordinator(self, key: str, connection: ConnectionContext) -> Node:
        return self.node(self.of(crc32(key.encode())))

    def of(self, number: int) -> int:
        """The node that a number falls to."""
        nodes = list(self.listeners)
        first = nodes[number % len(nodes)]
        return first if first in self.open else self.open[number % len(self.open)]


class HostBrokers:
    """The brokers of a host that was started with ``brokers``. All of them have the same data and answer all
    requests: there is no replication.
    """

    def __init__(self, thread: HostThread) -> None:
        self.thread = thread

    @property
    def nodes(self) -> SeveralNodes:
        nodes = self.thread.host.broker.nodes
        if not isinstance(nodes, SeveralNodes):
            raise RuntimeError("this host is one broker: start it with odradek.testing.host(brokers=3)")
        return nodes

    @property
    def ids(self) -> list[int]:
        """The ids of the brokers that are open."""
        return self.thread.call(lambda: list(self.nodes.open))

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition now."""
        return self.thread.call(lambda: self.nodes.leader(topic, partition))

    def coordinator(self, group_or_transactional_id: str) -> int:
        """The broker that coordinates a group or the transactions of an id now."""
        return self.thread.call(lambda: self.nodes.of(crc32(group_or_transactional_id.encode())))

    def connections(self, broker: int) -> int:
        """The number of connections to a broker."""
        return self.thread.call(lambda: len(self.listener(broker).channels))

    def close(self, broker: int) -> None:
        """Break the connections to a broker and refuse new ones. Metadata no longer lists it.

        Raises:
            ValueError: There is no such broker, it is closed, or it is the last one.
        """
        self.thread.await_on_loop(lambda: self.close_on_loop(broker))

    def open(self, broker: int) -> None:
        """Let a closed broker take connections again, on its port. What it led comes back.

        Raises:
            ValueError: There is no such broker, or it is open.
            ConfigError: Another program has taken the port.
        """
        self.thread.await_on_loop(lambda: self.open_on_loop(broker))

    def listener(self, broker: int) -> Listener:
        """The listener of a broker.

        Raises:
            ValueError: There is no such broker.
        """
        if broker not in self.nodes.listeners:
            raise ValueError(f"no broker {broker}: expected one of {list(self.nodes.listeners)}")
        return self.nodes.listeners[broker]

    async def close_on_loop(self, broker: int) -> None:
        listener, still_open = self.listener(broker), self.nodes.open
        if broker not in still_open:
            raise ValueError(f"broker {broker} is closed")
        if len(still_open) == 1:
            raise ValueError(f"broker {broker} is the last one that is open: stop the host instead")
        still_open.remove(broker)
        listener.address = replace(listener.address, port=listener.bound_port)
        await listener.close(0)
        listener.acceptor, listener.draining = None, False
        self.thread.reserve(listener.address.host, listener.address.port)

    async def open_on_loop(self, broker: int) -> None:
        listener = self.listener(broker)
        if broker in self.nodes.open:
            raise ValueError(f"broker {broker} is open")
        self.thread.release()
        listener.quotas.add_listener(listener.address.name)
        await listener.start()
        self.nodes.open = sorted([*self.nodes.open, broker])


def several(listeners: object, brokers: int) -> object:
    """The listeners of several brokers, in the form of the key ``listeners``.

    Args:
        listeners: The one listener of the first broker.
        brokers: How many.

    Raises:
        ConfigError: There are several listeners already.
    """
    if brokers == 1:
        return listeners
    if not isinstance(listeners, str) or "," in listeners:
        raise ConfigError("listeners", f"expected one listener for all brokers, found {listeners!r}")
    name, _, address = listeners.partition("://")
    host = address.rpartition(":")[0]
    return ",".join([listeners, *(f"{name}_{number}://{host}:0" for number in range(2, brokers + 1))])


def bootstrap(addresses: tuple[ListenerAddress, ...]) -> str:
    """The value for ``bootstrap.servers``."""
    local = (replace(each, host="127.0.0.1") if each.host in EVERY_ADDRESS else each for each in addresses)
    return ",".join(each.nearby(each.port) for each in local)
