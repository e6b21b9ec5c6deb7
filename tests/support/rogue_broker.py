"""A broker that misbehaves on the connections that a test has chosen, and closes all others."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from types import TracebackType
from typing import Self

from support.waiting import PATIENCE_S

HEAD = struct.Struct(">ihhi")
FIRST_ID = 1_000_000
HEARTBEAT, METADATA = 12, 3
VERSIONS = {HEARTBEAT: 3, METADATA: 5}
BODIES = {HEARTBEAT: b"\0\1g\0\0\0\0\0\0\0\0", METADATA: b"\0\0\0\0\1"}

Behavior = Callable[[socket.socket, int], object]
"""The behavior of the broker on a connection, by the correlation id of its first request."""


class RogueBroker:
    """Accepts connections, reads one request of each, and behaves as the test has said for its id."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.ids = count(FIRST_ID)
        self.behaviors: dict[int, Behavior] = {}
        self.reached: dict[int, threading.Event] = {}
        self.connections: list[socket.socket] = []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.accept)]

    @property
    def address(self) -> str:
        host, port = self.listening.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Self:
        self.threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for each in self.connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self.ended.is_set():
                connection, _ = self.listening.accept()
                self.connections.append(connection)
                self.threads.append(threading.Thread(target=self.serve, args=(connection,)))
                self.threads[-1].start()

    def serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, struct.error):
            connection.settimeout(20)
            head = receive(connection, HEAD.size)
            size, _, _, correlation_id = HEAD.unpack(head)
            behavior = self.behaviors.get(correlation_id)
            if behavior is None:
                return
            receive(connection, size + 4 - HEAD.size)
            self.reached[correlation_id].set()
            behavior(connection, correlation_id)

    @contextlib.contextmanager
    def client(
        self, gateway: tuple[str, int], behavior: Behavior, api_key: int = HEARTBEAT
    ) -> Iterator[socket.socket]:
        """A client of a gateway whose connection has ended here, with one request sent.

        Connections go to the brokers of the bootstrap list in turn, so it may take several.
        """
        for correlation_id in self.ids:
            reached = self.reached[correlation_id] = threading.Event()
            self.behaviors[correlation_id] = behavior
            with socket.create_connection(gateway, 20) as client:
                client.sendall(request(api_key, correlation_id))
                client.settimeout(0.05)
                end_s = time.monotonic() + PATIENCE_S
                while not reached.wait(0.01) and not has_data(client):
                    assert time.monotonic() < end_s
                client.settimeout(20)
                if reached.is_set():
                    yield client
                    return


def has_data(client: socket.socket) -> bool:
    """Whether another broker has answered, or closed the connection."""
    try:
        client.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def request(api_key: int, correlation_id: int) -> bytes:
    """A request of an API that passes a gateway."""
    body = struct.pack(">hhih", api_key, VERSIONS[api_key], correlation_id, 1) + b"c" + BODIES[api_key]
    return struct.pack(">i", len(body)) + body


def response(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


def receive(connection: socket.socket, size: int) -> bytes:
    """Read so many bytes, or fewer at the end of a connection."""
    data = b""
    while len(data) < size and (chunk := connection.recv(size - len(data))):
        data += chunk
    return data


def read_all(client: socket.socket) -> bytes:
    """The bytes that a client receives until its connection ends."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while chunk := client.recv(1 << 20):
            data += chunk
    return data
