"""An OTLP endpoint that accepts every request at once without parsing it.

Usage: ``python -m bench.delivery_sink http|grpc``; prints ``ready port=N``, ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys

import grpc.aio

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"


class HttpSink(asyncio.Protocol):
    """Counts bytes to find the end of a request."""

    def __init__(self) -> None:
        self.head = b""
        self.left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.left:
            self.head += data
            head, end, body = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            self.head = b""
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self.left, data = int(length), body
        self.left -= len(data)
        if not self.left:
            self.transport.write(OK)


async def http_sink() -> tuple[asyncio.Server, int]:
    server = await asyncio.get_running_loop().create_server(HttpSink, "127.0.0.1", 0)
    return server, int(server.sockets[0].getsockname()[1])


async def grpc_sink() -> tuple[grpc.aio.Server, int]:
    async def export(body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return b""

    server = grpc.aio.server(options=(("grpc.max_receive_message_length", -1),))
    handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
    service = "opentelemetry.proto.collector.metrics.v1.MetricsService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    return server, port


async def main(kind: str) -> None:
    server, port = await (http_sink() if kind == "http" else grpc_sink())
    print(f"ready port={port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    if isinstance(server, grpc.aio.Server):
        await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
