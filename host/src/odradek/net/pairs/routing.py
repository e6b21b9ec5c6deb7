"""How the clients of a listener choose a node: by the port that they dial, or by the server name in TLS."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from odradek.gateway.addresses import NamePerNode, NodeAddresses, PortPerNode
from odradek.gateway.addressing_settings import PORT_START, AddressingSettings
from odradek.gateway.node_names import host_name
from odradek.net.acceptor import listening_sockets
from odradek.net.pairs.certificate_names import check_covers
from odradek.plugin.config import ConfigError

if TYPE_CHECKING:
    from odradek.broker.broker_settings import Endpoint
    from odradek.net.listener import ListenerAddress
    from odradek.net.listener_tls import ListenerTls
    from odradek.net.tls_context import LoadedTls

log = logging.getLogger(__name__)

MOST_NAMES: Final = 4096
"""A certificate is checked for the names of so many nodes one by one."""
MISSING, UNKNOWN = "missing", "unknown"
"""Why a server name was refused, as the metric says it."""
UNRECOGNIZED: Final = ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME


class Routing(Protocol):
    """How the clients of a listener choose a node."""

    settings: AddressingSettings
    refused: Counter[str]
    """Server names that were refused, by reason."""

    @property
    def addresses(self) -> NodeAddresses:
        """The addresses that clients dial."""

    def secure(self, tls: ListenerTls) -> None:
        """Use the certificates of the listener.

        Raises:
            ConfigError: They are not for the advertised names.
        """

    async def listen(self, address: ListenerAddress, sockets: list[socket.socket]) -> None:
        """Bind all that is advertised, and advertise it.

        Args:
            address: The listener's address.
            sockets: The sockets of the bootstrap port; further ones are added.

        Raises:
            ConfigError: A port cannot be bound.
        """

    def node_of(self, transport: asyncio.BaseTransport) -> int | None:
        """The node of a client's connection; None if it has dialed the bootstrap address."""


def first_port(address: ListenerAddress, settings: AddressingSettings) -> int:
    """The port of the first node id at a listener; 0 takes any free ones."""
    return settings.port_start or (address.port + 1 if address.port else 0)


class PortRouting:
    """A port for each node."""

    def __init__(
        self, settings: AddressingSettings, addresses: PortPerNode, reuse_port: bool = False
    ) -> None:
        self.settings = settings
        self.reuse_port = reuse_port
        self.addresses = addresses
        self.refused: Counter[str] = Counter()
        self.nodes_by_port: dict[int, int] = {}

    def secure(self, tls: ListenerTls) -> None:
        """See `Routing`."""
        tls.require(lambda loaded: check_covers(loaded.certificate, [self.addresses.host]))

    async def listen(self, address: ListenerAddress, sockets: list[socket.socket]) -> None:
        """See `Routing`. Each node has its port from now on, whether or not it is known yet."""
        ports: list[int] = []
        start = first_port(address, self.settings)
        for place, node_id in enumerate(self.addresses.nodes):
            found = await self.node_sockets(replace(address, port=start and start + place), node_id)
            sockets += found
            ports.append(int(found[0].getsockname()[1]))
            self.nodes_by_port[ports[-1]] = node_id
        seen = self.settings.advertised_port_start
        self.addresses.ports = ports if seen is None else range(seen, seen + len(ports))

    async def node_sockets(self, address: ListenerAddress, node_id: int) -> list[socket.socket]:
        """Bind the port of a node.

        Raises:
            ConfigError: It cannot be bound.
        """
        try:
            return await listening_sockets(address.host, address.port, self.reuse_port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            problem = f"cannot listen on {address} for node {node_id}: {reason.lower()}"
            raise ConfigError(PORT_START, problem) from error

    def node_of(self, transport: asyncio.BaseTransport) -> int | None:
        """See `Routing`."""
        name = transport.get_extra_info("sockname")
        return self.nodes_by_port.get(int(name[1])) if name else None


class NameRouting:
    """A server name for each node, and one for the bootstrap address.

    Args:
        settings: The settings of the listener.
        addresses: The names of the nodes.
        bootstrap: The advertised address of the listener. Its port 0 stands for the bound one.
    """

    def __init__(self, settings: AddressingSettings, addresses: NamePerNode, bootstrap: Endpoint) -> None:
        self.settings = settings
        self.addresses = addresses
        self.refused: Counter[str] = Counter()
        self.bootstrap = host_name(bootstrap.host)
        self.port = bootstrap.port

    def secure(self, tls: ListenerTls) -> None:
        """See `Routing`. Each connection has to name a node or the bootstrap address from now on."""
        nodes, names = self.addresses.nodes, self.addresses.names
        # for more nodes only a wildcard will do, which any of them shows
        ids: Iterable[int] = nodes if len(nodes) <= MOST_NAMES else [nodes.ranges[-1][1]]
        advertised = [self.bootstrap, *map(names.name, ids)]

        def prepare(loaded: LoadedTls) -> None:
            check_covers(loaded.certificate, advertised)
            loaded.context.sni_callback = self.take_name

        tls.require(prepare)

    async def listen(self, address: ListenerAddress, sockets: list[socket.socket]) -> None:
        """See `Routing`. All nodes share the port of the listener."""
        self.addresses.port = self.port or int(sockets[0].getsockname()[1])

    def take_name(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> int | None:
        """Remember the server name of a handshake; refuse it with an alert if there is no such name."""
        if name is not None and (host_name(name) == self.bootstrap or self.node_id(name) is not None):
            connection.server_name = name  # type: ignore[attr-defined]  # a ClientTls
            return None
        why = MISSING if name is None else UNKNOWN
        self.refused[why] += 1
        connection.refusal = (  # type: ignore[attr-defined]
            "the client names no server (SNI)" if name is None else f"no node has the server name {name!r}"
        )
        return UNRECOGNIZED

    def node_id(self, name: str) -> int | None:
        """The node of a server name; None if no node has it."""
        node_id = self.addresses.names.node_id(name)
        return None if node_id is None or self.addresses.nodes.place(node_id) is None else node_id

    def node_of(self, transport: asyncio.BaseTransport) -> int | None:
        """See `Routing`."""
        return self.node_id(transport.get_extra_info("ssl_object").server_name)
