"""Runs a gateway on the loop of this thread, with the watch of its cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from odradek.client.address import addresses
from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import ClusterWatch, Observed
from odradek.client.command_config import CommandConfig, load_command_config
from odradek.gateway.addresses import NodeTable, UnmappedNodes
from odradek.gateway.gateway_settings import UPSTREAM
from odradek.net.pairs.gateway import Pairs
from odradek.programs.config import HostConfig
from odradek.programs.followed_cluster import first_poll
from odradek.programs.gateway import Gateway
from odradek.programs.gateway_addressing import check_upstream, routings_of
from odradek.programs.gateway_pairs import check_listeners

log = logging.getLogger(__name__)

LAG_TIMEOUT_MS = 5_000
"""Of each request about lag."""


class GatewayRun:
    """A gateway whose configuration has been checked, before it runs.

    Args:
        config: The configuration.

    Raises:
        ConfigError: It is not usable for a gateway.
    """

    def __init__(self, config: HostConfig) -> None:
        check_listeners(config)
        brokers = addresses(",".join(config.gateway.upstream), UPSTREAM)
        self.config = config
        self.connection: CommandConfig = load_command_config(config.gateway.upstream_config)
        self.tls = self.connection.context()
        self.upstream = [(each.host, each.port) for each in brokers]
        check_upstream(config, self.upstream)
        self.routings = routings_of(config, NodeTable(), UnmappedNodes())
        """Of the listeners, to be looked at."""

    @asynccontextmanager
    async def running(
        self,
        failed: Callable[[str], None],
        prepare: Callable[[Gateway], None] = lambda _gateway: None,
        *,
        is_first: bool = True,
    ) -> AsyncIterator[Gateway]:
        """Run the gateway in the body of the statement.

        Args:
            failed: Called with the reason if the gateway has to stop.
            prepare: Called with the gateway before it starts.
            is_first: See `Gateway`.

        Raises:
            ConfigError: A broker of the cluster has no address, or a port cannot be bound.
        """
        loop = asyncio.get_running_loop()
        own = self.config.gateway.own_telemetry

        def polled(state: Observed) -> None:
            loop.call_soon_threadsafe(gateway.polled, state)

        watch = ClusterWatch(
            self.connected,
            own.poll_interval_ms,
            polled,
            with_subscriptions=own.reads_cluster,
            topic_ids=lambda: gateway.topic_names.wanted(),
        )
        gateway = Gateway(
            self.config,
            self.upstream,
            self.tls,
            self.connection.login is not None,
            failed,
            refresh=watch.poke,
            is_first=is_first,
            connect=lambda: self.connected(LAG_TIMEOUT_MS),
        )
        try:
            prepare(gateway)
            found = await polled_first(watch, gateway.pairs)
            await gateway.start()
            gateway.polled(found)
            watch.start()
            yield gateway
        finally:
            await asyncio.to_thread(watch.stop)
            await gateway.stop()

    def connected(self, timeout_ms: int | None = None) -> AdminClient:
        """A client for the gateway's own requests, with the certificates and secrets of now."""
        return self.connection.admin(",".join(self.config.gateway.upstream), timeout_ms)


async def polled_first(watch: ClusterWatch, made: Pairs) -> Observed:
    """Ask the cluster for its brokers and subscriptions before clients can connect, unless it does not answer
    soon.

    Raises:
        ConfigError: A broker has no port.
    """
    found = await first_poll(watch)
    made.check_nodes(node_id for node_id, _, _ in found.nodes)
    if found.failure is not None:
        log.warning(
            "the cluster does not answer; clients are accepted, and closed until it does",
            extra={"upstream": ",".join(made.settings.upstream), "problem": found.failure},
        )
    return found


def ready_line(config: HostConfig, addresses: Sequence[str]) -> str:
    """The line that scripts wait for. Its ports are the bound ones, never 0."""
    gateway = config.gateway
    line = f"odradek ready listeners={','.join(addresses)} upstream={','.join(gateway.upstream)} "
    line += f"nodes={gateway.addressing}"
    return f"{line} workers={gateway.workers}" if gateway.workers > 1 else line
