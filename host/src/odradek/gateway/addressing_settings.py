"""The settings of the addresses that clients of a gateway dial."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from odradek.gateway.addresses import NodeRanges
from odradek.gateway.node_names import NODE_ID, NodeNames
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.kinds import INT, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType
from odradek.wire.limits import INT32_MAX

NODES, NODE_NAMES = "gateway.nodes", "gateway.node.names"
PORT_START, ADVERTISED_PORT_START = "gateway.port.start", "gateway.advertised.port.start"
PAGE = "gateway.md"
RANGE = re.compile(r"(?P<first>\d{1,10})(?:-(?P<last>\d{1,10}))?")
MOST_PORTS: Final = 4096
"""Each node with a port takes a listening socket."""
FIRST_THREE: Final = NodeRanges.of([(0, 2)])
EVERY_NODE: Final = NodeRanges.of([(0, INT32_MAX)])
LAST_PORT: Final = 65_535


def read_nodes(table: PluginConfig, key: str) -> NodeRanges:
    """Return ranges of node ids.

    Raises:
        ConfigError: A range is not of the form FIRST-LAST, or two ranges overlap.
    """
    ranges = []
    for text in table.texts(key):
        match = RANGE.fullmatch(text)
        if match is None:
            raise table.error(key, f"expected node ids and ranges like 0-2,101-103, found {text!r}")
        ranges.append((int(match["first"]), int(match["last"] or match["first"])))
    try:
        nodes = NodeRanges.of(ranges)
    except ValueError as error:
        raise table.error(key, f"expected ranges that do not overlap: {error}") from None
    if not len(nodes) or nodes.ranges[-1][1] > INT32_MAX:
        raise table.error(key, f"expected node ids from 0 to {INT32_MAX}, found {nodes_text(nodes)!r}")
    return nodes


def nodes_text(nodes: NodeRanges) -> str:
    """Return ranges as the setting has them."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in nodes.ranges)


def read_names(table: PluginConfig, key: str) -> NodeNames | None:
    """Return a pattern of host names; None for an empty text.

    Raises:
        ConfigError: It is not a pattern of host names.
    """
    text = table.text(key)
    try:
        return NodeNames.of(text) if text else None
    except ValueError as error:
        like = f"b{NODE_ID}.kafka.example.com"
        raise table.error(key, f"expected a pattern like {like} that {error}, found {text!r}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressingSettings:
    """The addresses that clients of a gateway dial: a port for each node, or a name for each node."""

    # fmt: off
    nodes: NodeRanges | None = setting(
        NODES, Special(type=ConfigType.LIST, shape="list", read=read_nodes, text=nodes_text), None,
        "Node ids of the cluster, as ids and ranges like `0-2,101-103`; each id has its address from the "
        "start on, known broker or not.", unset="`0-2`, or all with `gateway.node.names`", page=PAGE,
    )
    port_start: int | None = setting(
        PORT_START, Whole(INT, 1, LAST_PORT), None,
        "Port of the first node id; the next ones follow.", unset="the port after the listener's", page=PAGE,
        by_listener=True,
    )
    advertised_port_start: int | None = setting(
        ADVERTISED_PORT_START, Whole(INT, 1, LAST_PORT), None,
        "Port of the first node id as clients see it, if a load balancer maps the ports.",
        unset="the bound ports", page=PAGE, by_listener=True,
    )
    names: NodeNames | None = setting(
        NODE_NAMES, Special(type=ConfigType.STRING, shape="text", read=read_names, text=str), None,
        f"Host name of each node id, like `b{NODE_ID}.kafka.example.com`, for a listener with TLS: all nodes "
        "share its port, and the server name in the TLS handshake (SNI) tells which one a client wants.",
        unset="a port for each node id", page=PAGE, by_listener=True,
    )
    # fmt: on

    def __str__(self) -> str:
        return nodes_text(self.mapped) if self.names is None else str(self.names)

    @property
    def mapped(self) -> NodeRanges:
        """The node ids that have an address."""
        if self.nodes is not None:
            return self.nodes
        return FIRST_THREE if self.names is None else EVERY_NODE

    def check(self) -> None:
        """Check that each node id has one address.

        Raises:
            ConfigError: Names and ports are mixed, or there are not enough ports.
        """
        if self.names is None:
            self.check_ports()
            return
        for key, start in self.starts():
            if start is not None:
                raise ConfigError(key, f"has no use with {NODE_NAMES}: all nodes share the listener's port")

    def starts(self) -> tuple[tuple[str, int | None], ...]:
        """The first ports, by key."""
        return (PORT_START, self.port_start), (ADVERTISED_PORT_START, self.advertised_port_start)

    def check_ports(self) -> None:
        """Check that there is a port for each node id.

        Raises:
            ConfigError: There is none.
        """
        number = len(self.mapped)
        if number > MOST_PORTS:
            problem = f"expected at most {MOST_PORTS} node ids with a port each, found {number}"
            raise ConfigError(NODES, problem)
        for key, start in self.starts():
            check_range(key, number, start)


def check_range(key: str, number: int, start: int | None) -> None:
    """Check that there are enough ports from the first one on.

    Raises:
        ConfigError: There are not.
    """
    if start is not None and start + number - 1 > LAST_PORT:
        raise ConfigError(key, f"{number} node ids from port {start} on end beyond port {LAST_PORT}")
