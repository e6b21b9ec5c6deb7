"""HTTP on the loopback interface for the operations of a running host.

``POST /<operation>`` with a JSON object of its arguments returns the result as JSON, an error as
``{"error": "..."}``. A web page in a browser on the same machine cannot use it: browsers send ``Origin``,
which is refused, and a name that resolves to the loopback address is not accepted as ``Host``.
"""

from __future__ import annotations

import json
import logging
import socketserver
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

from odradek.plugin.config import ConfigError
from odradek.testing.arrivals import NothingCame
from odradek.testing.control.operations import Operations, UnknownOperation
from odradek.testing.fault import FaultNotHit
from odradek.wire.api_error import ApiError

LOOPBACK = "127.0.0.1"
HOST_NAMES = (LOOPBACK, "localhost")
MOST_BODY_BYTES = 16 << 20
IDLE_TIMEOUT_S = 300
POLL_S = 0.1

log = logging.getLogger(__name__)


class Refused(Exception):
    """The request is not for an operation; the body has not been read."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def status_of(error: Exception) -> HTTPStatus | None:
    """The status for an error; None for one that is not the caller's."""
    match error:
        case Refused():
            return error.status
        case UnknownOperation():
            return HTTPStatus.NOT_FOUND
        case NothingCame():
            return HTTPStatus.REQUEST_TIMEOUT
        case ValueError() | ApiError() | OverflowError() | RecursionError():
            return HTTPStatus.BAD_REQUEST
        case FaultNotHit() | RuntimeError():  # the host has stopped
            return HTTPStatus.CONFLICT
    return None


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
        self.refuse_browsers()
        if self.path != "/":
            self.operations.named(self.path.strip("/"))
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"use POST {self.path}; GET / lists all operations")
        return self.operations.index()

    def called(self) -> object:
        """The answer to POST."""
        self.refuse_browsers()
        body = self.body()
        try:
            given = json.loads(body or b"{}")
        except ValueError as error:
            raise ValueError(f"the body is not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ValueError("the body must be a JSON object of the arguments")
        return self.operations.call(self.path.strip("/"), given)

    def refuse_browsers(self) -> None:
        name = self.headers.get("Host", "").rpartition(":")[0]
        if "Origin" in self.headers or name not in HOST_NAMES:
            reason = f"expected http://{LOOPBACK}:PORT, and no Origin header: browsers may not use this port"
            raise Refused(HTTPStatus.FORBIDDEN, reason)

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


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A thread per connection. They end with the process: a request may wait when the server is closed."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    operations: Operations

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("control connection broke", exc_info=True)


class ControlServer:
    """Serves the operations of a host until it is closed.

    Raises:
        ConfigError: The port is in use.
    """

    def __init__(self, operations: Operations, port: int) -> None:
        try:
            self.server = Server((LOOPBACK, port), Handler)
        except OSError as error:
            reason = str(error.strerror).lower()
            raise ConfigError("--control-port", f"cannot listen on {LOOPBACK}:{port}: {reason}") from error
        self.server.operations = operations
        self.thread = threading.Thread(
            target=self.server.serve_forever, args=(POLL_S,), name="odradek-control", daemon=True
        )
        self.thread.start()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://{LOOPBACK}:{self.server.server_address[1]}"

    def close(self) -> None:
        """Close the port and end the thread."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
