"""A client that is gone before its answer arrives: its system refuses the answer."""

from __future__ import annotations

import socket
from typing import Any, cast

import pytest

from odradek.net.channel import Channel
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.produce import ProduceRequest
from support.channels import RecordingTransport, ScriptedListener
from support.gateway_pair import request


class OverTcp(RecordingTransport):
    """Sends answers to a client."""

    def __init__(self, ours: socket.socket) -> None:
        super().__init__()
        self.ours = ours

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.ours.sendall(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.ours if name == "socket" else default


@pytest.mark.parametrize(
    ("sent", "is_read", "in_order"),
    [
        (request(MetadataRequest(), 12, 2), False, True),
        (request(ProduceRequest(acks=-1), 9, 4), False, False),
        (request(ProduceRequest(acks=-1), 9, 4), True, True),
    ],
    ids=["metadata", "produce", "produce, read"],
)
def test_a_producer_that_does_not_get_its_answer_is_torn(sent: bytes, is_read: bool, in_order: bool) -> None:
    listener = ScriptedListener()
    channel = Channel(cast(Any, listener))
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    with ours:
        channel.connection_made(OverTcp(ours))
        client.sendall(sent)
        if not is_read:
            client.close()
        channel.data_received(ours.recv(10_000))
        if is_read:
            client.recv(10_000)
            client.close()
        assert ours.recv(1) == b""
        channel.eof_received()
    channel.connection_lost(None)

    assert listener.in_order == [in_order]
