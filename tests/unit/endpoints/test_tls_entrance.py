"""Connections to a TLS listener of a plugin, before their handshakes are done."""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import Any

import pytest

from odradek.endpoints.tls_entrance import NoTlsLoop, TlsEntrance, check_loop

HANDSHAKE_S = 10.0


class OtherLoop:
    """A loop that is not asyncio's."""


class Connection:
    """The protocol of the application."""

    def __init__(self) -> None:
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport


class Transport:
    """Remembers what was done to it."""

    protocol: Any = None
    is_aborted = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def abort(self) -> None:
        self.is_aborted = True


def entrance(most: int = 2) -> TlsEntrance:
    found = TlsEntrance(
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        HANDSHAKE_S,
        OtherLoop(),
        Connection,
        lambda: len(found) < most,
    )
    return found


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="asyncio of this Python leaves nothing")
def test_a_loop_that_keeps_failed_handshakes_is_refused() -> None:
    with asyncio.Runner() as runner, pytest.raises(NoTlsLoop, match=r"uvloop .* or Python 3\.13"):
        check_loop(runner.get_loop())


def test_the_application_has_a_connection_after_its_handshake() -> None:
    here, transport = entrance(), Transport()
    newcomer = here.accept()
    waiting = len(here)

    newcomer.connection_made(transport)

    assert waiting == 1
    assert transport.protocol.transport is transport
    assert len(here) == 0


def test_a_handshake_that_fails_gives_its_place_back() -> None:
    here = entrance(most=1)
    newcomer = here.accept()
    before = here.has_room()

    del newcomer  # all that the loop does

    assert not before
    assert here.has_room()


def test_a_connection_beyond_the_limit_is_closed() -> None:
    here, transport = entrance(most=1), Transport()
    first = here.accept()

    here.accept().connection_made(transport)

    assert transport.is_aborted
    assert transport.protocol is None
    assert len(here) == 1
    assert first in here.handshakes
