"""A full collection is short with many connections, and does not take longer for those that have ended."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.process.limits import new_loop
from odradek.programs.config import load_config
from odradek.programs.gateway import Gateway
from odradek.programs.host import Host
from support.gateway_pair import bare
from support.hosts import LOOPBACK
from support.left_behind import collected, connection, ended, says

pytestmark = pytest.mark.ci

API_VERSIONS = bare(18, 0, 1)
OPEN, ENDED = 100, 500
MOST_OBJECTS = 60
"""Of a pair and of the broker's end, which is in this process too. 5000 pairs have 300 000 objects then, and
a collection takes 75 ms."""


async def hosts(folder: Path, is_gateway: bool) -> list[Host | Gateway]:
    """A host, or a gateway in front of one, which is the last of the list."""
    found = Host(load_config(None, (f"listeners={LOOPBACK}", f"data.dir={folder / 'host'}")))
    await found.start()
    if not is_gateway:
        return [found]
    broker = ("127.0.0.1", found.listeners[0].bound_port)
    upstream = "gateway.upstream={}:{}".format(*broker)
    config = load_config(None, (f"listeners={LOOPBACK}", f"data.dir={folder / 'gateway'}", upstream))
    front = Gateway(config, [broker], None, False, lambda why: None)
    await front.start()
    return [found, front]


async def on_hosts(
    folder: Path, is_gateway: bool, measure: Callable[[Host | Gateway], Awaitable[float]]
) -> float:
    """Measure a host or a gateway while it runs."""
    started = await hosts(folder, is_gateway)
    try:
        return await measure(started[-1])
    finally:
        for each in reversed(started):
            await each.stop()


PROGRAMS = pytest.mark.parametrize("is_gateway", [False, True], ids=["serve", "gateway"])


@PROGRAMS
def test_an_open_connection_has_few_objects(tmp_path: Path, is_gateway: bool) -> None:
    async def objects(front: Host | Gateway) -> float:
        (listener,) = front.listeners
        clients = []
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(OPEN):
            client = socket.create_connection(("127.0.0.1", listener.bound_port))
            client.sendall(API_VERSIONS)
            await asyncio.to_thread(client.recv, 1_000)
            clients.append(client)
        gc.collect()
        found = len(gc.get_objects()) - before
        for client in clients:
            client.close()
        return found / OPEN

    with asyncio.Runner(loop_factory=new_loop) as runner:
        found = runner.run(on_hosts(tmp_path, is_gateway, objects))

    assert 0 < found < MOST_OBJECTS


@PROGRAMS
def test_connections_that_have_ended_cost_no_collection(tmp_path: Path, is_gateway: bool) -> None:
    async def left(front: Host | Gateway) -> float:
        (listener,) = front.listeners

        async def lives(number: int) -> None:
            for _ in range(number):
                await asyncio.to_thread(connection, listener.bound_port, says(API_VERSIONS))
            await ended(lambda: not listener.channels)

        await lives(10)
        gc.collect()
        before = len(gc.get_objects())
        with collected() as garbage:
            await lives(ENDED)
            grown = len(gc.get_objects()) - before
        return len(garbage) + max(grown, 0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        found = runner.run(on_hosts(tmp_path, is_gateway, left))

    assert found < ENDED
