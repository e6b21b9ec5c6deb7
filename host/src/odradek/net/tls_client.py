"""TLS connections to servers."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from odradek.net.tls_transport import TlsTransport


async def connect(context: ssl.SSLContext, protocol: asyncio.BaseProtocol, host: str, port: int) -> None:
    """Connect a protocol to a server, and wait for the handshake.

    Raises:
        OSError: There is no connection, or the handshake failed.
    """
    loop = asyncio.get_running_loop()
    transport: Any = TlsTransport(context, protocol, loop, host)
    try:
        await loop.create_connection(lambda: transport, host, port)
        try:
            await transport.handshaken
        except BaseException:
            transport.abort()
            raise
    finally:
        transport = None  # it refers to the error, whose traceback refers to this frame
