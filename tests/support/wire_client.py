"""A raw connection to a host that sends and receives frames."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any, Self, TypeVar

from odradek.client.connection import answer_type
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

Response = TypeVar("Response")


class WireClient:
    """One connection. Every operation is bounded by ``timeout_s``."""

    def __init__(
        self, address: tuple[str, int], client_id: str | None = "raw", timeout_s: float = 30
    ) -> None:
        self.socket = socket.create_connection(address, timeout_s)
        self.client_id = client_id
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def frame(self, request: Any, version: int) -> bytes:
        """A request with its length prefix."""
        self.correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self.correlation_id, self.client_id)
        body = request_header(header, flexible_request_header(request, version)) + encode(request, version)
        return struct.pack(">i", len(body)) + body

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("closed")
            data += chunk
        return data

    def receive_frame(self) -> bytes:
        return self.receive(struct.unpack(">i", self.receive(4))[0])

    def closed_by_peer(self) -> bool:
        """Wait for the end of the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def send(self, request: Any, version: int | None = None) -> Any:
        """The response."""
        chosen: int = request.VERSIONS.last if version is None else version
        self.send_bytes(self.frame(request, chosen))
        return self.answer(request, chosen)

    def answer(self, request: Any, version: int) -> Any:
        """Read the response to a request that was sent."""
        frame = self.receive_frame()
        correlation_id, start = read_response_header(frame, 0, flexible_response_header(request, version))
        assert correlation_id == self.correlation_id
        return decode(answer_type(type(request)), version, frame, start)

    def introduce(self, name: str = "raw-client", version: str = "1.0") -> None:
        """Send ApiVersions, as every client does first."""
        response = self.send(
            ApiVersionsRequest(client_software_name=name, client_software_version=version), 3
        )
        assert response.error_code == 0

    def subscriptions(self, client_instance_id: bytes = bytes(16)) -> GetTelemetrySubscriptionsResponse:
        response = self.send(GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id))
        assert isinstance(response, GetTelemetrySubscriptionsResponse)
        return response

    def push(self, metrics: bytes, codec: int = 0) -> int:
        """Get the subscription as a new client instance and push once; return the error code."""
        subscription = self.subscriptions()
        response = self.send(
            PushTelemetryRequest(
                client_instance_id=subscription.client_instance_id,
                subscription_id=subscription.subscription_id,
                compression_type=codec,
                metrics=metrics,
            )
        )
        return int(response.error_code)


def with_client(address: tuple[str, int], use: Callable[[WireClient], Response]) -> Response:
    """Open a connection, use it, close it."""
    with WireClient(address) as client:
        client.introduce()
        return use(client)
