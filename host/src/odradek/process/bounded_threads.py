"""Servers with a thread for each connection, of which there is a bounded number, and few for one address."""

from __future__ import annotations

import io
import socket
import time
from socketserver import ThreadingMixIn
from threading import Lock
from typing import Any, Final

from odradek.endpoints import Shares, holder_of

BACKLOG: Final = 64
"""With the 5 of `socketserver`, a client beside a few others waits a second for its connection."""


class BoundedThreads(ThreadingMixIn):
    """Closes connections beyond the limits: of all, and of one address or one /64 of IPv6."""

    daemon_threads = True
    request_queue_size = BACKLOG
    connections_max = 64
    connections_max_per_ip = 32

    def __init__(self, *arguments: Any) -> None:
        self.lock = Lock()
        self.shares = Shares(self.connections_max_per_ip)
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a connection gets a thread; a share of its address then."""
        with self.lock:
            is_full = sum(self.shares.held.values()) >= self.connections_max
            return not is_full and self.shares.take(holder_of(client_address[0]))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread of its own.

        Raises:
            RuntimeError: The system has no more threads.
        """
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            self.give_back(client_address)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and give its share back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.give_back(client_address)

    def give_back(self, client_address: Any) -> None:
        """A connection has ended."""
        with self.lock:
            self.shares.give_back(holder_of(client_address[0]))


class Timed(io.RawIOBase):
    """The bytes of a peer until a point in time, however slowly they come. A socket's own time limit begins
    again with each of them.

    Args:
        connection: The socket.
        limit_s: The time for all bytes.
    """

    def __init__(self, connection: socket.socket, limit_s: float) -> None:
        self.connection = connection
        self.limit_s = limit_s
        self.end_s = time.monotonic() + limit_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes.

        Raises:
            TimeoutError: The time is over.
        """
        left_s = self.end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the request took too long")
        self.connection.settimeout(left_s)
        try:
            return self.connection.recv_into(buffer)
        finally:
            self.connection.settimeout(self.limit_s)
