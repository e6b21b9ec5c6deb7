"""A connection of a gateway leaves nothing, whoever ends it."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(slots=True)
class Case:
    """An end of a pair: what the client does, what the broker does, and how the gateway ends it."""

    client: Client
    broker: Broker
    listener: str = "PLAINTEXT"
    end: Callable[[ClientSide], None] | None = None


CASES = {
    **{name: Case(client, broker) for name, (client, broker) in ENDS.items()},
    **{
        f"TLS, {name}": Case(over_tls(context(), client), broker, "SSL")
        for name, (client, broker) in ENDS.items()
    },
    **{name: Case(client, answers, end=end) for name, (end, client) in BY_GATEWAY.items()},
}


async def left(host: Gateway, case: Case) -> Counter[str]:
    """What a pair leaves, with the garbage of the loop."""
    found = next(each for each in host.listeners if each.address.name == case.listener)
    listener = cast(GatewayListener, found)
    channels = cast(set[ClientSide], cast(Any, listener.channels))

    async def life() -> None:
        done = asyncio.create_task(asyncio.to_thread(connection, listener.bound_port, case.client))
        if case.end is not None:
            await ended(lambda: any(each.idle_since_ms() is not None for each in channels))
            for each in list(channels):
                case.end(each)
        await done
        await ended(lambda: not (listener.channels or listener.connecting or listener.peers))

    return await left_by(life)


def all_left(
    folder: Path,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    port: int,
    cases: dict[str, Case],
    begin: Callable[[Case], object] = lambda case: None,
    *,
    tls: ssl.SSLContext | None = None,
    patience_ms: int = 20_000,
) -> dict[str, Counter[str]]:
    """What pairs leave, by the names of their cases; only those that leave something.

    Args:
        folder: For data.
        new_loop: Makes the loop.
        port: The broker's.
        cases: The ends, one after the other.
        begin: Called before each of them.
        tls: Of the broker.
        patience_ms: For a dial.
    """
    values = (LISTENERS, f"data.dir={folder / 'data'}", f"gateway.dial.timeout.ms={patience_ms}")
    config = load_config(None, (*values, f"gateway.upstream=127.0.0.1:{port}", *Files(folder).settings), ())

    async def run() -> dict[str, Counter[str]]:
        host = Gateway(config, [("127.0.0.1", port)], tls, False, lambda why: None)
        host.ground.quotas.is_enabled = True
        await host.start()
        try:
            of_loop, found = await left_by_loop(), {}
            for name, case in cases.items():
                begin(case)
                found[name] = await left(host, case) - of_loop - of_loop
            return found
        finally:
            await host.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return {name: counts for name, counts in runner.run(run()).items() if counts}


@pytest.mark.parametrize("new_loop", loops())
def test_pairs_leave_nothing(tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    now: list[Broker] = [answers]

    def begin(case: Case) -> None:
        now[0] = case.broker

    with broker_of(lambda client: now[0](client)) as port:
        found = all_left(tmp_path, new_loop, port, CASES, begin)

    assert found == {}


DIALS: dict[str, tuple[Broker | None, ssl.SSLContext | None, int]] = {
    "refused": (None, None, 20_000),
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
    case = Case(waits_after(sends(REQUEST)), behavior or answers)

    with broker_of(case.broker) as port:
        if behavior is not None:
            found = all_left(tmp_path, new_loop, port, {name: case}, tls=tls, patience_ms=patience_ms)
    if behavior is None:  # nobody listens there any more
        found = all_left(tmp_path, new_loop, port, {name: case})

    assert found == {}
