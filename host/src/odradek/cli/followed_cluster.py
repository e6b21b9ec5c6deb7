"""The cluster that a host or a gateway asks for subscriptions again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from odradek.client.address import addresses
from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import ClusterWatch, Observed
from odradek.client.command_config import CommandConfig, load_command_config
from odradek.gateway.follow_settings import SERVERS, FollowSettings

if TYPE_CHECKING:
    from odradek.programs.host import Host

log = logging.getLogger(__name__)

FIRST_POLL_S: Final = 5.0
"""Time for the cluster to answer before the start goes on without it."""


def client_of(servers: Sequence[str], connection: CommandConfig) -> AdminClient:
    """A client for requests to a cluster, with the certificates and secrets of now."""
    return AdminClient(
        ",".join(servers),
        client_id=connection.client_id,
        timeout_s=connection.request_timeout_ms / 1000,
        login=connection.login,
        tls=connection.context(),
    )


async def first_poll(watch: ClusterWatch) -> Observed:
    """Ask the cluster before clients can connect, unless it does not answer soon."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Observed] = loop.create_future()

    def answered(state: Observed) -> None:
        if not found.done():
            found.set_result(state)

    def ask() -> None:
        state = watch.poll()
        with contextlib.suppress(RuntimeError):  # the process ends
            loop.call_soon_threadsafe(answered, state)

    # no thread of the pool: the process would wait for it when it ends
    threading.Thread(target=ask, name="odradek-first-poll", daemon=True).start()
    try:
        return await asyncio.wait_for(found, FIRST_POLL_S)
    except TimeoutError:
        return Observed(failure=f"no answer within {FIRST_POLL_S:g} s")


@asynccontextmanager
async def following(host: Host, settings: FollowSettings) -> AsyncIterator[None]:
    """Let a host follow the subscriptions of a cluster in the body of the statement, which starts the host.

    Raises:
        ConfigError: An address or the properties file is not usable.
    """
    addresses(",".join(settings.servers), SERVERS)
    connection = load_command_config(settings.command_config)
    followed = host.pushes.followed
    assert followed is not None
    loop = asyncio.get_running_loop()

    def polled(state: Observed) -> None:
        loop.call_soon_threadsafe(followed.polled, state)

    watch = ClusterWatch(lambda: client_of(settings.servers, connection), settings.interval_ms, polled)
    followed.polled(await first_poll(watch))
    watch.start()
    try:
        yield
    finally:
        await asyncio.to_thread(watch.stop)
