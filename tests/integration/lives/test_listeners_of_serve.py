"""A connection of a host leaves nothing, whatever its end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from odradek.net.listener import Listener
from odradek.programs.config import load_config
from odradek.programs.host import Host
from support.certificates import Files
from support.gateway_pair import bare
from support.left_behind import (
    Client,
    connection,
    context,
    ended,
    half_closes,
    hello,
    left_by,
    left_by_loop,
    over_tls,
    resets,
    says,
    sends,
    waits,
    waits_after,
)
from support.loops import loops

pytestmark = pytest.mark.ci

API_VERSIONS = bare(18, 0, 1)
GARBAGE = b"\xff" * 64
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
HELLO = hello(context())
SASL_HANDSHAKE = bare(17, 1, 1, b"\0\5PLAIN")
WRONG_PASSWORD = bare(36, 0, 2, b"\0\0\0\6\0a\0bcd")

ENDS: dict[str, Client] = {
    "nothing": lambda plain: None,
    "complete": says(API_VERSIONS),
    "half a request": sends(API_VERSIONS[:9]),
    "refused": waits_after(sends(GARBAGE)),
    "reset": resets(says(API_VERSIONS)),
    "half-close": half_closes(says(API_VERSIONS)),
}
HANDSHAKES: dict[str, Client] = {
    "six bytes": sends(HELLO[:6]),
    "half a hello": sends(HELLO[:-9]),
    "a hello": says(HELLO),
    "a hello, then half-closed": half_closes(says(HELLO)),
    "a hello, then a reset": resets(says(HELLO)),
    "a hello, then garbage": waits_after(says(HELLO, GARBAGE)),
    "garbage": waits_after(sends(GARBAGE)),
    "no trust": over_tls(context(trusts=False), lambda secret: None),
    "timed out": waits,
}
LOGINS: dict[str, Client] = {
    "nothing": lambda plain: None,
    "begun": says(SASL_HANDSHAKE),
    "refused": waits_after(says(SASL_HANDSHAKE, WRONG_PASSWORD)),
    "not begun": waits_after(sends(bare(3, 0, 1))),
    "timed out": waits,
}
CASES = [
    *(pytest.param("SASL_PLAINTEXT", client, id=f"login, {name}") for name, client in LOGINS.items()),
    *(pytest.param("PLAINTEXT", client, id=f"plaintext, {name}") for name, client in ENDS.items()),
    *(pytest.param("SSL", over_tls(context(), client), id=f"TLS, {name}") for name, client in ENDS.items()),
    *(pytest.param("SSL", client, id=f"handshake, {name}") for name, client in HANDSHAKES.items()),
]


def is_free(listener: Listener) -> bool:
    """Whether no connection is open."""
    return not (listener.channels or listener.connecting or listener.peers)


@pytest.mark.parametrize("new_loop", loops())
@pytest.mark.parametrize(("name", "client"), CASES)
def test_it_leaves_nothing(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], name: str, client: Client
) -> None:
    files, max_ms = Files(tmp_path), 100 if client is waits else 60_000
    config = load_config(
        None,
        (
            LISTENERS,
            f"data.dir={tmp_path / 'data'}",
            f"connections.unauthenticated.max.ms={max_ms}",
            *files.settings,
        ),
    )

    async def left() -> Counter[str]:
        host = Host(config)
        await host.start()
        listener = next(each for each in host.listeners if each.address.name == name)

        async def life() -> None:
            await asyncio.to_thread(connection, listener.bound_port, client)
            await ended(partial(is_free, listener))

        try:
            return await left_by(life) - await left_by_loop()
        finally:
            await host.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(left()) == Counter()
