"""Both ends of a TLS connection, in memory."""

from __future__ import annotations

import ssl
from typing import Any


class Handshake:
    """Both ends of a TLS connection; it stands for the server's transport.

    Args:
        here: The context of the server.
        there: The context of the client.
        name: The server name that the client sends.
    """

    def __init__(self, here: ssl.SSLContext, there: ssl.SSLContext, name: str | None = "localhost") -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server: Any = here.wrap_bio(to_server, to_client, server_side=True)
        self.client = there.wrap_bio(to_client, to_server, server_hostname=name)

    def shake(self) -> None:
        """Exchange messages until both ends are done.

        Raises:
            ssl.SSLError: One end refuses the other.
        """
        left = [self.client, self.server]
        for _ in range(10):
            for end in list(left):
                try:
                    end.do_handshake()
                    left.remove(end)
                except ssl.SSLWantReadError:
                    pass

    def get_extra_info(self, name: str) -> Any:
        """As a transport of the event loop."""
        assert name == "ssl_object"
        return self.server
