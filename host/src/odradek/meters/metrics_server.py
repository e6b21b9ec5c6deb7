"""The HTTP server for Prometheus: plain or with TLS, open or for those who know a token."""

from __future__ import annotations

import hmac
import io
import json
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from odradek.meters.health import Probe
from odradek.net.listener_tls import ListenerTls
from odradek.process.bounded_threads import BoundedThreads, Timed

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10
"""Time for the handshake, for a request to arrive, and for its answer to be read."""
App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
ReadObjects = Callable[[], Iterable[Mapping[str, Any]]]
"""The objects of a page. Called on the thread of a connection."""


class Answer(io.BufferedIOBase):
    """Writes to a connection. `wsgiref` prints the traceback of every failure but a ConnectionError."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any) -> int:
        """Write all of it.

        Raises:
            ConnectionAbortedError: The client has left, or does not read.
        """
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise ConnectionAbortedError(str(error)) from error
        return len(data)


class SilentHandler(WSGIRequestHandler):
    """Answers one connection, and logs no requests."""

    timeout = TIMEOUT_S

    def setup(self) -> None:
        """Make the streams, and bound the time of the whole request."""
        super().setup()
        self.wfile = Answer(self.connection)
        self.rfile.close()
        self.rfile = io.BufferedReader(Timed(self.connection, self.timeout))

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  its name in the base class
        """Log nothing."""


class MetricsServer(BoundedThreads, WSGIServer):
    """Each connection has a thread, where its handshake takes place too: a slow client holds up no other.

    Args:
        host: The host.
        port: The port; 0 takes any free one.
        app: Answers the requests.
        tls: The certificates; new connections use the newest. None for plain HTTP.

    Raises:
        OSError: The address is in use, or the host does not exist.
    """

    def __init__(self, host: str, port: int, app: App, tls: ListenerTls | None) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, address = found[0]
        self.tls = tls
        super().__init__((str(address[0]), port), SilentHandler)
        self.set_app(app)

    def server_bind(self) -> None:
        """Bind without a lookup of the host's name, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection, on its thread."""
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(TIMEOUT_S)
        with self.tls.loaded.context.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client has broken off, or has no certificate."""
        log.debug("a request for metrics failed", exc_info=True, extra={"address": client_address[0]})


def guarded(app: App, token: str) -> App:
    """The same for requests with a bearer token; others are refused."""
    expected = f"Bearer {token}".encode()

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        given = str(environ.get("HTTP_AUTHORIZATION", "")).encode("latin-1", "replace")
        if hmac.compare_digest(given, expected):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Type", "text/plain")])
        return [b"a bearer token is required\n"]

    return answer


def with_pages(app: App, pages: Mapping[str, ReadObjects]) -> App:
    """The same with pages of JSON: an object a line."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        read = pages.get(str(environ.get("PATH_INFO")))
        if read is None:
            return app(environ, start_response)
        start_response("200 OK", [("Content-Type", "application/x-ndjson")])
        return (json.dumps(each).encode() + b"\n" for each in read())

    return answer


def with_health(app: App, probes: Mapping[str, Probe], trouble: Probe) -> App:
    """The same with the paths of probes, which need no token: 200, or 503 and the problem.

    A passed probe names the trouble, too: the process should neither end nor lose its clients for it.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        probe = probes.get(str(environ.get("PATH_INFO")))
        if probe is None:
            return app(environ, start_response)
        problem = probe()
        status = "200 OK" if problem is None else "503 Service Unavailable"
        start_response(status, [("Content-Type", "text/plain")])
        lines = [problem] if problem is not None else ["ok", trouble()]
        return [f"{line}\n".encode() for line in lines if line is not None]

    return answer
