"""A broker with scripted answers, on a real loopback socket."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from odradek.client.connection import answer_type
from odradek.wire import messages
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.types import Versions
from support.headers import peek_api, read_request_header, response_header

Answer = Callable[[Any], Any]


class HangUp(Exception):
    """Raised by an answer: close the connection instead."""


class Silence(Exception):
    """Raised by an answer: never answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    version: int
    client_id: str | None
    request: Any


@dataclass(slots=True)
class ScriptedBroker:
    """Answers requests by their type; the answer to ApiVersions is derived from ``offered``.

    Args:
        answers: Request type to a function from request to response.
        offered: API key to versions; by default all versions of the APIs in ``answers``.
        api_versions: The versions of ApiVersions itself.
    """

    answers: Mapping[Any, Answer] = field(default_factory=dict)
    offered: Mapping[int, Versions] | None = None
    api_versions: Versions = ApiVersionsRequest.VERSIONS
    asked: list[Asked] = field(default_factory=list)
    listener: socket.socket = field(init=False)
    thread: threading.Thread = field(init=False)
    connections: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def of(self, request_type: type[Any]) -> list[Any]:
        """The requests of one type, in order."""
        return [asked.request for asked in self.asked if isinstance(asked.request, request_type)]

    def versions_of(self, request_type: type[Any]) -> list[int]:
        """The versions in which they came."""
        return [asked.version for asked in self.asked if isinstance(asked.request, request_type)]

    def accept(self) -> None:
        """Serve one connection after the other, each on its own thread."""
        workers: list[threading.Thread] = []
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                break
            self.connections.append(connection)
            workers.append(threading.Thread(target=self.serve, args=(connection,), daemon=True))
            workers[-1].start()
        for worker in workers:
            worker.join(5)

    def serve(self, connection: socket.socket) -> None:
        """Answer until the client disconnects or the script ends."""
        with connection, contextlib.suppress(OSError, HangUp):
            stream = connection.makefile("rb")
            with stream:
                while head := stream.read(4):
                    frame = stream.read(struct.unpack(">i", head)[0])
                    with contextlib.suppress(Silence):
                        answer = self.answer(frame)
                        connection.sendall(struct.pack(">i", len(answer)) + answer)

    def answer(self, frame: bytes) -> bytes:
        """The response to one frame, header and body."""
        key, version = peek_api(frame)
        if key == ApiVersionsRequest.API_KEY and version not in self.api_versions:
            self.asked.append(Asked(version, None, ApiVersionsRequest()))
            correlation_id = int.from_bytes(frame[4:8])
            return response_header(correlation_id, flexible=False) + encode(self.too_new(), 0)
        request_type = request_types()[key]
        flexible = version in request_type.FLEXIBLE
        header, start = read_request_header(frame, 0, flexible)
        request = decode(request_type, version, frame, start)
        self.asked.append(Asked(version, header.client_id, request))
        response = self.response(request)
        if isinstance(response, bytes):
            return response
        tagged = flexible and key != ApiVersionsRequest.API_KEY
        return response_header(header.correlation_id, tagged) + encode(response, version)

    def response(self, request: Any) -> Any:
        """The script's answer to a request."""
        if type(request) in self.answers:
            return self.answers[type(request)](request)
        return ApiVersionsResponse(api_keys=[row(key, found) for key, found in self.all_offered().items()])

    def all_offered(self) -> dict[int, Versions]:
        """The answer to ApiVersions."""
        offered = self.offered
        if offered is None:
            offered = {request_type.API_KEY: request_type.VERSIONS for request_type in self.answers}
        return {ApiVersionsRequest.API_KEY: self.api_versions, **offered}

    def too_new(self) -> ApiVersionsResponse:
        """The refusal of KIP-511."""
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[row(ApiVersionsRequest.API_KEY, self.api_versions)],
        )


def row(key: int, versions: Versions) -> ApiVersion:
    """One API of ApiVersions."""
    return ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)


def request_types() -> dict[int, type[Any]]:
    """Every declared request, by API key."""
    found: dict[int, type[Any]] = {}
    for module in pkgutil.iter_modules(messages.__path__):
        declared = importlib.import_module(f"{messages.__name__}.{module.name}")
        for name, thing in vars(declared).items():
            if name.endswith("Request") and hasattr(thing, "API_KEY"):
                assert answer_type(thing).API_KEY == thing.API_KEY
                found[thing.API_KEY] = thing
    return found
