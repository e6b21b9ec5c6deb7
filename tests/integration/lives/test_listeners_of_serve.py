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
CASES = {
    **{f"login, {name}": ("SASL_PLAINTEXT", client) for name, client in LOGINS.items()},
    **{f"plaintext, {name}": ("PLAINTEXT", client) for name, client in ENDS.items()},
    **{f"TLS, {name}": ("SSL", over_tls(context(), client)) for name, client in ENDS.items()},
    **{f"handshake, {name}": ("SSL", client) for name, client in HANDSHAKES.items()},
}
"""A listener and a client's end, by a name."""
PATIENT_MS, IMPATIENT_MS = 60_000, 100


def is_free(listener: Listener) -> bool:
    """Whether no connection is open."""
    return not (listener.channels or listener.connecting or listener.peers)


@pytest.mark.parametrize("max_ms", [PATIENT_MS, IMPATIENT_MS])
@pytest.mark.parametrize("new_loop", loops())
def test_they_leave_nothing(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop], max_ms: int
) -> None:
    """An impatient host has only clients that wait."""
    config = load_config(
        None,
        (
            LISTENERS,
            f"data.dir={tmp_path / 'data'}",
            f"connections.unauthenticated.max.ms={max_ms}",
            *Files(tmp_path).settings,
        ),
    )

    async def left(host: Host, name: str, client: Client) -> Counter[str]:
        listener = next(each for each in host.listeners if each.address.name == name)

        async def life() -> None:
            await asyncio.to_thread(connection, listener.bound_port, client)
            await ended(partial(is_free, listener))

        return await left_by(life)

    async def all_left() -> dict[str, Counter[str]]:
        host = Host(config)
        await host.start()
        try:
            of_loop = await left_by_loop()
            return {
                name: await left(host, *case) - of_loop
                for name, case in CASES.items()
                if (case[1] is waits) is (max_ms == IMPATIENT_MS)
            }
        finally:
            await host.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        found = runner.run(all_left())

    assert found
    assert {name: left for name, left in found.items() if left} == {}
