"""A socket that carries frames: a four-byte length, then that many bytes. Every wait has a deadline."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress

from odradek.client.address import Address
from odradek.client.errors import ConnectFailed, Disconnected, TimedOut
from odradek.client.tls import secured, tls_reason

MAX_RESPONSE_BYTES = 100 * 1024 * 1024
"""Limit of a response. It equals Kafka's limit of a request, and no answer to this client comes near it."""
LENGTH = struct.Struct(">i")


class Channel:
    """An open connection.

    Raises:
        ConnectFailed: No broker listens at the address, or the host name cannot be resolved.
        TimedOut: The connection was not established in time.
    """

    def __init__(self, address: Address, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self.address = address
        try:
            self.socket: socket.socket = socket.create_connection((address.host, address.port), timeout_s)
        except TimeoutError:
            raise TimedOut(f"{address}: no connection within {timeout_s:g} s") from None
        except OSError as error:
            raise ConnectFailed(f"{address}: {reason(error)}") from None
        except UnicodeError:
            raise ConnectFailed(f"{address}: not a valid host name") from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = secured(self.socket, address, tls)

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and return the next frame that arrives.

        Args:
            frame: The frame without its length.
            timeout_s: Limit for sending and receiving together.

        Raises:
            ConnectFailed: The broker closed the connection, or sent an invalid length.
            TimedOut: The response did not arrive in time.
        """
        deadline_s = time.monotonic() + timeout_s
        try:
            self.socket.settimeout(timeout_s)
            self.socket.sendall(LENGTH.pack(len(frame)) + frame)
            (length,) = LENGTH.unpack(self.receive(LENGTH.size, deadline_s))
            if not 0 <= length <= MAX_RESPONSE_BYTES:
                raise ConnectFailed(
                    f"{self.address}: invalid response length {length}; is this a Kafka listener without TLS?"
                )
            return self.receive(length, deadline_s)
        except TimeoutError:
            raise TimedOut(f"{self.address}: no answer within {timeout_s:g} s") from None
        except ssl.SSLError as error:
            raise ConnectFailed(f"{self.address}: {tls_reason(error)}") from None
        except ConnectionError as error:
            raise Disconnected(f"{self.address}: {reason(error)}") from None
        except OSError as error:
            raise ConnectFailed(f"{self.address}: {reason(error)}") from None

    def receive(self, count: int, deadline_s: float) -> bytes:
        """Receive exactly ``count`` bytes."""
        pieces = bytearray()
        while len(pieces) < count:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self.socket.settimeout(left_s)
            piece = self.socket.recv(min(count - len(pieces), 1 << 16))
            if not piece:
                raise Disconnected(f"{self.address}: the broker closed the connection")
            pieces += piece
        return bytes(pieces)

    def interrupt(self) -> None:
        """Let an exchange on another thread fail."""
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)  # not TLS's, which the exchange uses

    def close(self) -> None:
        """Close the socket. Closing again does nothing."""
        self.socket.close()


def reason(error: OSError) -> str:
    """The operating system's error text, without its number."""
    return (error.strerror or str(error)).lower()
