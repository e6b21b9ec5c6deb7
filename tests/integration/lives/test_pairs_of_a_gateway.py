"""A connection of a gateway leaves nothing, whoever ends it."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.gateway.pair_failure import Cause
from odradek.net.pairs.client_side import ClientSide, GatewayListener
from odradek.programs.config import load_config
from odradek.programs.gateway import Gateway
from support.certificates import Files
from support.gateway_pair import HEARTBEAT, bare
from support.left_behind import (
    Client,
    connection,
    context,
    ended,
    half_closes,
    left_by,
    left_by_loop,
    over_tls,
    resets,
    says,
    sends,
    waits,
    waits_after,
)
from support.loopback_broker import Broker, answers, broker_of, speaks_no_tls, takes_a_request
from support.loops import loops

pytestmark = pytest.mark.ci

REQUEST = bare(HEARTBEAT, 3, 1)
ASKED_FOR_PUSHES = bare(71, 0, 1, b"\0" + bytes(range(16)) + b"\0")
GARBAGE = b"\xff" * 64
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"


def killed(side: ClientSide) -> None:
    side.give_up(Cause.MEMORY)


def idle(side: ClientSide) -> None:
    side.end(Cause.IDLE)


ASKS = says(REQUEST)
ENDS: dict[str, tuple[Client, Broker]] = {
    "nothing": (lambda plain: None, answers),
    "complete": (ASKS, answers),
    "six bytes": (sends(REQUEST[:6]), answers),
    "half a request": (sends(REQUEST + REQUEST[:9]), answers),
    "reset": (resets(ASKS), answers),
    "half-close": (half_closes(ASKS), answers),
    "left before the answer": (sends(REQUEST), takes_a_request),
    "garbage": (waits_after(sends(GARBAGE)), answers),
    "garbage later": (waits_after(says(REQUEST, GARBAGE)), answers),
    "the gateway's own answer": (says(ASKED_FOR_PUSHES, ASKED_FOR_PUSHES), answers),
    "the broker ends": (waits_after(sends(REQUEST)), takes_a_request),
    "the broker resets": (waits_after(sends(REQUEST)), resets(takes_a_request)),
    "the broker ends at once": (waits_after(sends(REQUEST)), lambda client: None),
    "garbage of the broker": (waits_after(sends(REQUEST)), speaks_no_tls),
}
BY_GATEWAY: dict[str, tuple[Callable[[ClientSide], None], Client]] = {
    "killed": (killed, waits_after(ASKS)),
    "idle": (idle, waits_after(ASKS)),
    "idle without a request": (idle, waits),
    "drained": (ClientSide.drain, waits_after(ASKS)),
}


def left(
    folder: Path,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    client: Client,
    port: int,
    *,
    listener_name: str = "PLAINTEXT",
    tls: ssl.SSLContext | None = None,
    end: Callable[[ClientSide], None] | None = None,
    patience_ms: int = 20_000,
) -> Counter[str]:
    """What a pair leaves, beside the garbage of the loop.

    Args:
        folder: For data.
        new_loop: Makes the loop.
        client: What the client does.
        port: The broker's.
        listener_name: The client's.
        tls: Of the broker.
        end: Ends the pair.
        patience_ms: For a dial.
    """
    values = (LISTENERS, f"data.dir={folder / 'data'}", f"gateway.dial.timeout.ms={patience_ms}")
    config = load_config(None, (*values, f"gateway.upstream=127.0.0.1:{port}", *Files(folder).settings), ())

    async def run() -> Counter[str]:
        host = Gateway(config, [("127.0.0.1", port)], tls, False, lambda why: None)
        host.ground.quotas.is_enabled = True
        await host.start()
        found = next(each for each in host.listeners if each.address.name == listener_name)
        listener = cast(GatewayListener, found)
        channels = cast(set[ClientSide], cast(Any, listener.channels))

        async def life() -> None:
            done = asyncio.create_task(asyncio.to_thread(connection, listener.bound_port, client))
            if end is not None:
                await ended(lambda: any(each.idle_since_ms() is not None for each in channels))
                for each in list(channels):
                    end(each)
            await done
            await ended(lambda: not (listener.channels or listener.connecting or listener.peers))

        try:
            of_loop = await left_by_loop()
            return await left_by(life) - of_loop - of_loop
        finally:
            await host.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(run())


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "TLS"])
def test_an_end_of_client_or_broker(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str, tls: bool
) -> None:
    client, behavior = ENDS[name]
    if tls:
        client = over_tls(context(), client)

    with broker_of(behavior) as port:
        found = left(tmp_path, new_loop, client, port, listener_name="SSL" if tls else "PLAINTEXT")

    assert found == Counter()


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize("name", BY_GATEWAY)
def test_an_end_by_the_gateway(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str
) -> None:
    end, client = BY_GATEWAY[name]

    with broker_of(answers) as port:
        found = left(tmp_path, new_loop, client, port, end=end)

    assert found == Counter()


DIALS: dict[str, tuple[Broker, ssl.SSLContext | None, int]] = {
    "refused": (answers, None, 20_000),
    "no TLS": (speaks_no_tls, context(), 20_000),
    "no hello": (waits, context(), 20),
    "reset in the handshake": (resets(takes_a_request), context(), 20_000),
}


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize("name", DIALS)
def test_a_dial_that_fails(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str
) -> None:
    behavior, tls, patience_ms = DIALS[name]
    client = waits_after(sends(REQUEST))

    with broker_of(behavior) as port:
        if name != "refused":
            found = left(tmp_path, new_loop, client, port, tls=tls, patience_ms=patience_ms)
    if name == "refused":
        found = left(tmp_path, new_loop, client, port)

    assert found == Counter()
