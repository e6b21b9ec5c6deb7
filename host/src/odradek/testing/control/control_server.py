"""HTTP for the operations of a running host.

``POST /<operation>`` with a JSON object of its arguments returns the result as JSON, an error as
``{"error": "..."}``. With a token, each request must carry it. Without one the server must listen on the
loopback interface, and a web page in a browser on the same machine cannot use it: browsers send ``Origin``,
which is refused, and a name that resolves to the loopback address is not accepted as ``Host``.
"""

from __future__ import annotations

import json
import logging
import socket
import socketserver
import threading
from collections.abc import Sequence
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

from odradek.broker.broker_settings import Endpoint
from odradek.plugin.config import ConfigError
from odradek.process.bounded_threads import BoundedThreads
from odradek.testing.arrivals import NothingCame
from odradek.testing.control.operations import Operations, UnknownOperation
from odradek.testing.fault import FaultNotHit
from odradek.wire.api_error import ApiError

OPTION = "--control"
TOKEN_VARIABLE = "ODRADEK_CONTROL_TOKEN"  # noqa: S105  its name
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST_BODY_BYTES = 16 << 20
IDLE_TIMEOUT_S = 300
POLL_S = 0.1

log = logging.getLogger(__name__)


class Refused(Exception):
    """The request is not for an operation; the body has not been read."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


STATUS: Sequence[tuple[tuple[type[Exception], ...], HTTPStatus]] = (
    ((UnknownOperation,), HTTPStatus.NOT_FOUND),
    ((NothingCame,), HTTPStatus.REQUEST_TIMEOUT),
    ((ValueError, ApiError, ConfigError, OverflowError, RecursionError), HTTPStatus.BAD_REQUEST),
    ((FaultNotHit, RuntimeError), HTTPStatus.CONFLICT),  # the host has stopped
)


def status_of(error: Exception) -> HTTPStatus | None:
    """The status for an error; None for one that is not the caller's."""
    if isinstance(error, Refused):
        return error.status
    return next((status for kinds, status in STATUS if isinstance(error, kinds)), None)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "odradek", ""
    timeout = IDLE_TIMEOUT_S

    @property
    def operations(self) -> Operations:
        return cast(Server, self.server).operations

    def do_GET(self) -> None:
        self.respond(self.listed)

    def do_POST(self) -> None:
        self.respond(self.called)

    def respond(self, result_of: Any) -> None:
        try:
            status, answer = HTTPStatus.OK, result_of()
        except Exception as error:
            known = status_of(error)
            if known is None:
                log.exception("control request failed", extra={"path": self.path})
            if isinstance(error, Refused):
                self.close_connection = True
            status, answer = known or HTTPStatus.INTERNAL_SERVER_ERROR, described(error)
        self.answer(status, answer)

    def listed(self) -> object:
        """The answer to GET."""
        self.refuse_strangers()
        if self.path != "/":
            self.operations.named(self.path.strip("/"))
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"use POST {self.path}; GET / lists all operations")
        return self.operations.index()

    def called(self) -> object:
        """The answer to POST."""
        self.refuse_strangers()
        body = self.body()
        try:
            given = json.loads(body or b"{}")
        except ValueError as error:
            raise ValueError(f"the body is not JSON: {error}") from error
        except RecursionError as error:
            raise ValueError("the body is nested too deeply") from error
        if not isinstance(given, dict):
            raise ValueError("the body must be a JSON object of the arguments")
        return self.operations.call(self.path.strip("/"), given)

    def refuse_strangers(self) -> None:
        """Refuse browsers, and requests without the token if there is one."""
        token = cast(Server, self.server).token
        name = self.headers.get("Host", "").rpartition(":")[0]
        if "Origin" in self.headers or (token is None and name not in LOOPBACK_NAMES):
            reason = "expected http://127.0.0.1:PORT, and no Origin header: browsers may not use this port"
            raise Refused(HTTPStatus.FORBIDDEN, reason)
        if token is not None and not self.has(token):
            reason = f"expected the header Authorization: Bearer TOKEN with {TOKEN_VARIABLE}"
            raise Refused(HTTPStatus.UNAUTHORIZED, reason)

    def has(self, token: str) -> bool:
        """Whether the request has the token. The time that this takes does not depend on what it has."""
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and compare_digest(
            given.strip().encode("utf-8", "surrogateescape"), token.encode()
        )

    def body(self) -> bytes:
        text = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not text.isdecimal():
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "send the body with Content-Length, not in chunks")
        if len(text) > len(str(MOST_BODY_BYTES)) or int(text) > MOST_BODY_BYTES:
            reason = f"the body may have {MOST_BODY_BYTES} bytes at most"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
        return self.rfile.read(int(text))

    def answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is not HTTP, or has another method."""
        self.close_connection = True
        self.answer(code, {"error": message or explain or HTTPStatus(code).phrase})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        log.debug(format, *args)


def described(error: Exception) -> dict[str, object]:
    if isinstance(error, ApiError):
        return {"error": str(error), "code": error.code.name}
    return {"error": str(error) or type(error).__name__}


class Server(BoundedThreads, socketserver.TCPServer):
    """A thread per connection. They end with the process: a request may wait when the server is closed."""

    allow_reuse_address = True
    block_on_close = False
    connections_max = 1_024
    connections_max_per_ip = 512
    operations: Operations
    token: str | None

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("control connection broke", exc_info=True, extra={"address": client_address[0]})


class ControlServer:
    """Serves the operations of a host until it is closed.

    Args:
        operations: The operations.
        address: The address to listen on; port 0 picks a free one.
        token: The bearer token of all requests; None for requests of this machine without one.

    Raises:
        ConfigError: The address cannot be listened on.
    """

    def __init__(self, operations: Operations, address: Endpoint, token: str | None) -> None:
        self.name = f"[{address.host}]" if ":" in address.host else address.host
        try:
            self.server = Server(address.host, address.port)
        except (OSError, UnicodeError) as error:
            reason = str(getattr(error, "strerror", None) or error).lower()
            raise ConfigError(OPTION, f"cannot listen on {self.name}:{address.port}: {reason}") from error
        self.server.operations, self.server.token = operations, token
        self.thread = threading.Thread(
            target=self.server.serve_forever, args=(POLL_S,), name="odradek-control", daemon=True
        )
        self.thread.start()

    @property
    def url(self) -> str:
        """``http://HOST:PORT`` with the port that was bound."""
        return f"http://{self.name}:{self.server.server_address[1]}"

    def close(self) -> None:
        """Close the port and end the thread."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
