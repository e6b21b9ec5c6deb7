"""Whether the ports of a gateway are free, before its workers share them."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from odradek.net.acceptor import listening_sockets
from odradek.net.listener import not_listening
from odradek.net.pairs.routing import Routing
from odradek.programs.config import HostConfig


async def check_free(config: HostConfig, routings: Mapping[str, Routing]) -> None:
    """Check that no other process has one of the ports.

    Workers would share them with another gateway of the same user without a word.

    Raises:
        ConfigError: A port is in use.
    """
    sockets: list[socket.socket] = []
    try:
        for address in config.listeners:
            try:
                found = await listening_sockets(address.host, address.port)
            except (OSError, UnicodeError) as error:
                raise not_listening(address, error) from error
            sockets += found
            await routings[address.name].listen(address, sockets)
    finally:
        for each in sockets:
            each.close()
