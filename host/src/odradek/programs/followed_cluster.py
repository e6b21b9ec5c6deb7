"""The cluster that a host or a gateway asks for subscriptions again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from odradek.client.address import addresses
from odradek.client.cluster_watch import ClusterWatch, Observed
from odradek.client.command_config import load_command_config
from odradek.gateway.follow_settings import SERVERS, FollowSettings

if TYPE_CHECKING:
    from odradek.programs.host import Host

log = logging.getLogger(__name__)

FIRST_POLL_S: Final = 5.0
"""Time for the cluster to answer before the start goes on without it."""


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
    servers = ",".join(settings.servers)
    addresses(servers, SERVERS)
    connection = load_command_config(settings.command_config)
    followed = host.pushes.followed
    assert followed is not None
    loop = asyncio.get_running_loop()

    def polled(state: Observed) -> None:
        loop.call_soon_threadsafe(followed.polled, state)

    watch = ClusterWatch(lambda: connection.admin(servers), settings.interval_ms, polled)
    followed.polled(await first_poll(watch))
    watch.start()
    try:
        yield
    finally:
        await asyncio.to_thread(watch.stop)
