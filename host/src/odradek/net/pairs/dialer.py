"""Connections to brokers."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from odradek.bounds.sampled_log import SampledLog
from odradek.gateway.addresses import NodeTable
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.reachability import Reachability
from odradek.net import tls_client
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

UNKNOWN_WAIT_S = 5.0
"""How long a connection to a node waits until its address is known."""
Address = tuple[str, int]
BOOTSTRAP = "bootstrap"
KINDS: Mapping[str, type[OSError]] = {
    "tls": ssl.SSLError,
    "timeout": TimeoutError,
    "refused": ConnectionRefusedError,
    "reset": ConnectionError,
    "unknown-host": socket.gaierror,
}


class Dialer:
    """Dials brokers for pairs.

    Args:
        bootstrap: Addresses for pairs of the bootstrap address, begun with in turn.
        table: The addresses of nodes.
        tls: Encrypts the connections; None for a cluster without TLS.
        timeout_s: For one dial, with its TLS handshake.
        clock: The time.
        reachability: Learns whether a broker has answered.
        refresh: Asks for the nodes again, after a failed dial or for an unknown node.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        table: NodeTable,
        tls: ssl.SSLContext | None,
        timeout_s: float,
        clock: Clock,
        reachability: Reachability,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self.bootstrap = bootstrap
        self.table = table
        self.tls = tls
        self.timeout_s = timeout_s
        self.clock = clock
        self.reachability = reachability
        self.refresh = refresh
        self.turn = count()
        self.failures: Counter[tuple[str, str]] = Counter()
        """Failed dials, by node id (`bootstrap` for the others) and kind of error."""
        self.failed_log = SampledLog(log)
        self.waiting: set[asyncio.Event] = set()
        table.listeners.append(self.node_learned)

    async def dial(self, node_id: int | None, protocol: asyncio.Protocol) -> PairFailure | None:
        """Connect to a node, or to any broker. Returns the failure; None after success."""
        if node_id is None:
            first = next(self.turn)
            size = len(self.bootstrap)
            for step in range(size):
                failure = await self.connect(self.bootstrap[(first + step) % size], protocol, BOOTSTRAP)
                if failure is None:
                    return None
            return failure
        address = self.table.address(node_id) or await self.learned(node_id)
        if address is None:
            why = f"no broker has named the address of node {node_id} yet"
            return PairFailure(Cause.UNKNOWN_NODE, why)
        return await self.connect(address, protocol, str(node_id))

    async def connect(self, address: Address, protocol: asyncio.Protocol, node: str) -> PairFailure | None:
        """Connect to one address."""
        loop = asyncio.get_running_loop()
        host, port = address
        try:
            async with asyncio.timeout(self.timeout_s):
                if self.tls is None:
                    await loop.create_connection(lambda: protocol, host, port)
                else:
                    await tls_client.connect(self.tls, protocol, host, port)
        except OSError as error:  # also TimeoutError and ssl.SSLError
            # A future of asyncio's keeps the error, and a frame keeps the future, with buffers of TLS
            # (python/cpython#109534).
            error.with_traceback(None)
            why = "no connection in time" if isinstance(error, TimeoutError) else reason(error)
            self.failures[node, kind_of(error)] += 1
            self.failed_log.write(
                logging.WARNING,
                self.clock.monotonic_ms(),
                "cannot connect to a broker",
                node=node,
                broker=f"{host}:{port}",
                why=why,
            )
            if node == BOOTSTRAP:
                self.reachability.missed(self.clock.monotonic_ms())
            self.refresh()
            return PairFailure(Cause.UNREACHABLE, f"{host}:{port}: {why}")
        self.reachability.reached()
        return None

    async def learned(self, node_id: int) -> Address | None:
        """Wait until a response has named the address of a node; None if that takes too long."""
        self.refresh()
        news = asyncio.Event()
        self.waiting.add(news)
        try:
            async with asyncio.timeout(UNKNOWN_WAIT_S):
                while (address := self.table.address(node_id)) is None:
                    news.clear()
                    await news.wait()
                return address
        except TimeoutError:
            return None
        finally:
            self.waiting.discard(news)

    def node_learned(self, _node_id: int) -> None:
        """The address of a node has become known."""
        for news in self.waiting:
            news.set()


def kind_of(error: OSError) -> str:
    """Return why a connection failed, as the metrics name it."""
    for kind, errors in KINDS.items():
        if isinstance(error, errors):
            return kind
    return "other"


def reason(error: OSError) -> str:
    """Return why a connection failed, in OpenSSL's or the system's words."""
    words = getattr(error, "verify_message", None) or getattr(error, "reason", None)
    return str(words or error.strerror or error)
