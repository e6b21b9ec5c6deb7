"""Tells a client why its TLS handshake failed.

The event loops drop the alert that OpenSSL writes when a handshake fails: a client without a certificate only
sees a closed connection. So the end of a handshake is watched here, and its last bytes are sent.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from contextvars import ContextVar
from typing import Any

CONNECTION: ContextVar[socket.socket | None] = ContextVar("CONNECTION", default=None)
"""The connection of the transport that is being made."""


class AlertingObject(ssl.SSLObject):
    """The TLS of one connection."""

    outgoing: ssl.MemoryBIO
    connection: socket.socket | None
    server_name: str = ""
    """The name that the client has asked for, if the listener looks at it."""
    refusal: str | None = None
    """Why the listener has refused the server name."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if self.refusal is not None:
                error.reason = self.refusal  # instead of OpenSSL's "callback failed"
            alert = self.outgoing.read()
            if alert and self.connection is not None:
                # earlier messages have been sent, or the client would not have answered
                with contextlib.suppress(OSError):
                    self.connection.send(alert)
            raise
        self.connection = None


class AlertingContext(ssl.SSLContext):
    """A server's context whose failed handshakes end with an alert."""

    sslobject_class = AlertingObject

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> Any:
        made = super().wrap_bio(incoming, outgoing, *args, **options)
        assert isinstance(made, AlertingObject)
        made.outgoing = outgoing
        made.connection = CONNECTION.get()
        return made
