"""A broker that does one thing with each connection, one after the other, without a loop."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from support.gateway_pair import answer
from support.waiting import PATIENCE_S

RESPONSE = answer(1, bytes(8))
GARBAGE = b"\xff" * 64

Broker = Callable[[socket.socket], object]
"""What the broker does with a connection, on its thread. The connection is closed afterwards."""


def answers(client: socket.socket) -> None:
    """Answer requests until the client leaves."""
    while client.recv(65_536):
        client.sendall(RESPONSE)


def takes_a_request(client: socket.socket) -> None:
    client.recv(65_536)


def answers_nothing(client: socket.socket) -> None:
    """Read until the client leaves."""
    while client.recv(65_536):
        pass


def speaks_no_tls(client: socket.socket) -> None:
    client.sendall(GARBAGE)


@contextlib.contextmanager
def broker_of(behavior: Broker) -> Iterator[int]:
    """The port of a broker, which serves one connection after the other."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                client.settimeout(PATIENCE_S)
                with client, contextlib.suppress(OSError):
                    behavior(client)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(PATIENCE_S)
