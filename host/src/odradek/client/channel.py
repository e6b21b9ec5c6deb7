"""One socket with frames on it: a four-byte length, then so many bytes. Every wait ends at a deadline."""

from __future__ import annotations

import socket
import struct
import time

from odradek.client.address import Address
from odradek.client.errors import ConnectFailed, TimedOut

MAX_RESPONSE_BYTES = 100 * 1024 * 1024
"""No broker's answer to this client grows beyond it; Kafka's own bound on a request is the same."""
LENGTH = struct.Struct(">i")


class Channel:
    """An open connection.

    Raises:
        ConnectFailed: Nobody listens there, or the name has no address.
        TimedOut: Nobody answers there.
    """

    def __init__(self, address: Address, timeout_s: float) -> None:
        self.address = address
        try:
            self.socket = socket.create_connection((address.host, address.port), timeout_s)
        except TimeoutError:
            raise TimedOut(f"{address}: no connection within {timeout_s:g} s") from None
        except OSError as error:
            raise ConnectFailed(f"{address}: {reason(error)}") from None
        except UnicodeError:
            raise ConnectFailed(f"{address}: that does not name a host") from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def exchange(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a frame and wait for the next one.

        Args:
            frame: Without its length.
            timeout_s: For both ways together.

        Raises:
            ConnectFailed: The broker hung up, or sends what is no frame.
            TimedOut: The time is over.
        """
        deadline_s = time.monotonic() + timeout_s
        try:
            self.socket.settimeout(timeout_s)
            self.socket.sendall(LENGTH.pack(len(frame)) + frame)
            (length,) = LENGTH.unpack(self.receive(LENGTH.size, deadline_s))
            if not 0 <= length <= MAX_RESPONSE_BYTES:
                raise ConnectFailed(
                    f"{self.address}: a response of {length} bytes; is that a Kafka listener?"
                )
            return self.receive(length, deadline_s)
        except TimeoutError:
            raise TimedOut(f"{self.address}: no answer within {timeout_s:g} s") from None
        except OSError as error:
            raise ConnectFailed(f"{self.address}: {reason(error)}") from None

    def receive(self, count: int, deadline_s: float) -> bytes:
        """Exactly ``count`` bytes."""
        pieces = bytearray()
        while len(pieces) < count:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            self.socket.settimeout(left_s)
            piece = self.socket.recv(min(count - len(pieces), 1 << 16))
            if not piece:
                raise ConnectFailed(f"{self.address}: the broker closed the connection")
            pieces += piece
        return bytes(pieces)

    def close(self) -> None:
        """Let go; harmless twice."""
        self.socket.close()


def reason(error: OSError) -> str:
    """What the system says, without its number."""
    return (error.strerror or str(error)).lower()
