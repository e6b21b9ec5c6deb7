"""A client that does not read holds up its broker, not the gateway's memory."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from bench.harness import rss_bytes
from support.gateways import gateway_of

pytestmark = pytest.mark.ci

RESPONSE_BYTES = 96 << 20
"""Twice as much as the kernel's buffers of four sockets on loopback: Linux 6.18 receives up to 32 MiB for a
program that reads fast, as the gateway does at first."""
HEARTBEAT = struct.pack(">ihhih", 10, 12, 3, 7, -1)
CLIENT_BUFFER_BYTES = 65_536
HELD_BYTES = 4 << 20
"""More than the gateway holds for one connection, with what a first request takes."""


class Upstream:
    """A broker that answers Heartbeat with a large response, and nothing else."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.sent = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return "127.0.0.1:{}".format(*self.listening.getsockname()[1:])

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
                with connection:
                    if connection.recv(100) == HEARTBEAT:
                        self.answer(connection)
            except OSError:
                return

    def answer(self, connection: socket.socket) -> None:
        left = struct.pack(">ii", RESPONSE_BYTES + 4, 7) + bytes(RESPONSE_BYTES)
        for start in range(0, len(left), 65_536):
            connection.sendall(left[start : start + 65_536])
            self.sent = start

    def close(self) -> None:
        self.listening.close()


def test_a_broker_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    upstream = Upstream()
    with gateway_of(upstream.address, tmp_path) as process:
        host, _, port = process.bootstrap.rpartition(":")
        with socket.socket() as client:
            client.settimeout(20)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CLIENT_BUFFER_BYTES)
            client.connect((host, int(port)))
            idle = rss_bytes(process.process.pid)
            client.sendall(HEARTBEAT)
            before = -1
            while before != upstream.sent or not before:
                before = upstream.sent
                time.sleep(0.3)
            stalled, held = upstream.sent, rss_bytes(process.process.pid) - idle
            received = 0
            while received < RESPONSE_BYTES + 8 and (data := client.recv(1 << 20)):
                received += len(data)
    upstream.close()

    assert stalled < RESPONSE_BYTES * 3 // 4
    assert held < HELD_BYTES
    assert received == RESPONSE_BYTES + 8
