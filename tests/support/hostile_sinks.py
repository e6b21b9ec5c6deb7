"""HTTP endpoints on loopback that answer in ways that no specification allows, or that a proxy would."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import repeat
from typing import Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)

DRIP_S: Final = 0.02
"""Between two bytes of a drip: shorter than any time limit, so that only a limit of the whole ends it."""
REDIRECTS: Final = (301, 302, 303, 307, 308)
REFUSED: Final = ExportMetricsServiceResponse(
    partial_success=ExportMetricsPartialSuccess(rejected_data_points=1, error_message="no")
).SerializeToString()
"""OTLP's answer to a request of which it stored nothing."""


@dataclass(eq=False)
class Sink:
    """One endpoint; `answer` may be changed while it runs."""

    answer: Callable[[Sink, socket.socket], None]
    tls: ssl.SSLContext | None = None
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    requests: list[str] = field(default_factory=list)
    """The first words of each request: method and path."""
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        """Accept until the listener is closed; each connection has a thread and one request."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.meet, args=(connection,), daemon=True).start()

    def meet(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), ExitStack() as closing:
            closing.enter_context(connection).settimeout(10)
            if self.tls is not None:
                connection = closing.enter_context(self.tls.wrap_socket(connection, server_side=True))
            self.requests.append(read_request(connection))
            self.answer(self, connection)


def read_request(connection: socket.socket) -> str:
    """Read one request to its end; return its method and path."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1 << 16) or bytes(4) + b"\r\n\r\n"
    head, _, body = received.partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.splitlines()[1:] if b": " in line)
    left = int(fields.get(b"content-length", b"0")) - len(body)
    while left > 0 and (piece := connection.recv(left)):
        left -= len(piece)
    return b" ".join(head.split(b" ", 2)[:2]).decode()


@contextlib.contextmanager
def sinking(
    answer: Callable[[Sink, socket.socket], None], tls: ssl.SSLContext | None = None
) -> Iterator[Sink]:
    """Run an endpoint."""
    sink = Sink(answer, tls)
    thread = threading.Thread(target=sink.serve, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        sink.ended.set()
        with contextlib.suppress(OSError):
            sink.listener.shutdown(socket.SHUT_RDWR)
        sink.listener.close()
        thread.join(10)


def response(status: int, body: bytes = b"", length: int | None = None, **headers: str) -> bytes:
    """A response as bytes, with another length than its own if one is given."""
    fields = {"Content-Length": str(len(body) if length is None else length), "Connection": "close"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def plain(*arguments: object, **headers: str) -> Callable[[Sink, socket.socket], None]:
    """An endpoint that always gives the same response; arguments as of `response`."""

    def answer(_: Sink, connection: socket.socket) -> None:
        connection.sendall(response(*arguments, **headers))  # type: ignore[arg-type]

    return answer


def moved(status: int) -> Callable[[Sink, socket.socket], None]:
    """A redirect to another path of the same endpoint, where everything is accepted."""

    def answer(sink: Sink, connection: socket.socket) -> None:
        is_there = sink.requests[-1].endswith("/login")
        connection.sendall(response(200) if is_there else response(status, Location=f"{sink.url}/login"))

    return answer


def hang(sink: Sink, _: socket.socket) -> None:
    """Reads the request, and never answers."""
    sink.ended.wait()


def drip(sink: Sink, connection: socket.socket) -> None:
    """Sends a header that never ends, byte by byte."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not sink.ended.wait(DRIP_S):
        connection.sendall(b"x")


def drip_body(sink: Sink, connection: socket.socket) -> None:
    """Accepts the request, and sends a body that never ends, byte by byte."""
    connection.sendall(response(200, length=1 << 40))
    while not sink.ended.wait(DRIP_S):
        connection.sendall(b"x")


def endless(_: Sink, connection: socket.socket) -> None:
    """Accepts the request, and sends a body as fast as it can until the client hangs up."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for piece in repeat(bytes(1 << 16), 4096):
        connection.sendall(piece)


def reset(_: Sink, connection: socket.socket) -> None:
    """Ends the connection with RST instead of an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def closed(_: Sink, _connection: socket.socket) -> None:
    """Closes the connection without an answer."""


WAITS: Final = {
    "negative": "-5",
    "huge": "9" * 400,
    "NaN": "nan",
    "infinite": "inf",
    "a past date": formatdate(0, usegmt=True),
    "a far date": "Fri, 31 Dec 9999 23:59:59 GMT",
    "no date": "Fri, 99 Foo 2026 99:99:99 GMT",
    "garbage": "soon, \u00b2",
    "empty": "",
}
"""Texts of Retry-After."""
HOSTILE: Final = {
    **{f"{status}": moved(status) for status in REDIRECTS},
    "304": plain(304),
    "302 to nowhere": plain(302),
    "half a body": plain(200, b"{}", 1000),
    "a web page": plain(200, b"<html>log in</html>", Content_Type="text/html"),
    "no protocol": lambda _, connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "reset": reset,
    "closed": closed,
    "404": plain(404),
    "429": plain(429, Retry_After="1"),
    **{f"503, Retry-After is {name}": plain(503, Retry_After=text) for name, text in WAITS.items()},
}
"""Endpoints that did not take what was sent, and say so at once."""
SLOW: Final = {"hang": hang, "drip": drip, "drip of a body": drip_body}
"""Endpoints that only a time limit ends."""
TAKING: Final = {
    "200": plain(200),
    "202": plain(202),
    "a large header": plain(200, X_Large="x" * 9000),
    "an endless body": endless,
}
"""Endpoints that took what was sent. Some say it oddly."""
