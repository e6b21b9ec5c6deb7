"""From a frame to an answer: which handler serves which API in which versions, and the one place that turns
errors into responses.

A handler is a function in ``broker/handlers/<api>.py``, named after the API::

    @answers(HeartbeatRequest, HeartbeatResponse)
    def heartbeat(
        request: HeartbeatRequest, context: RequestContext, broker: Broker
    ) -> HeartbeatResponse: ...

It returns a response, or a `Deferred` one, or None where the protocol has no answer (Produce with acks=0).
It refuses with `ApiError`; what else it raises is a bug, logged and answered with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from odradek.broker.broker import Broker
from odradek.broker.dispatch.deferred import Deferred
from odradek.broker.dispatch.throttling import Charge, Exchange, Throttle, Throttled, charge_time
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.codec import reader, writer
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import read_client_id
from odradek.wire.types import Versions

log = logging.getLogger(__name__)

API_VERSIONS_KEY = 18

Handler = Callable[[Any, RequestContext, Broker], Any]
Refusal = Callable[[Any, ErrorCode, str | None], Any]
H = TypeVar("H", bound=Callable[..., Any])


class CloseConnection(Exception):
    """A handler's only way to refuse where the protocol has no answer; the connection is closed."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one API is served."""

    request: type[Any]
    response: type[Any]
    handler: Handler
    refusal: Refusal
    versions: Versions
    """What is parsed."""
    advertised: Versions
    """What ApiVersions says, which may be wider: clients infer features from it."""
    charge: Charge
    """What a request costs where quotas are set."""


ROUTES: dict[int, Route] = {}
"""Filled by importing the handlers; the only module-level table of the host."""


def answers(
    request: type[Any],
    response: type[Any],
    *,
    versions: Versions | None = None,
    advertised: Versions | None = None,
    refusal: Refusal | None = None,
    charge: Charge = charge_time,
) -> Callable[[H], H]:
    """Register a handler.

    Args:
        request: The request's declaration; its ``VERSIONS`` are served unless ``versions`` narrows them.
        response: The response's declaration.
        versions: The versions that are parsed.
        advertised: What ApiVersions says, where that differs.
        refusal: Makes the response for an `ApiError`; by default a response with this ``error_code``,
            which will not do where the response has none at the top in every version.
        charge: What a request costs where quotas are set, see ``broker/dispatch/throttling.py``.
    """

    def register(handler: H) -> H:
        served = versions or request.VERSIONS
        refuse = refusal or (lambda _request, code, _message: response(error_code=code))
        ROUTES[request.API_KEY] = Route(
            request, response, handler, refuse, served, advertised or served, charge
        )
        return handler

    return register


def load_handlers() -> dict[int, Route]:
    """Import every handler and give the finished table."""
    package = importlib.import_module("odradek.broker.handlers")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return ROUTES


# API key and version in one number, correlation id, length of the client id: the same in all versions
REQUEST_HEADER = struct.Struct(">iih")
SHORT_PREFIX = struct.Struct(">ii")  # frame length, correlation id (response header v0)
TAGGED_PREFIX = struct.Struct(">iib")  # the same and an empty tag section (response header v1)
unpack_api = struct.Struct(">hh").unpack_from
unpack_header, pack_short, pack_tagged = REQUEST_HEADER.unpack_from, SHORT_PREFIX.pack, TAGGED_PREFIX.pack


@dataclass(slots=True)
class CompiledRoute:
    """A route at one version, with everything looked up."""

    api_key: int
    version: int
    handler: Handler
    refusal: Refusal
    read: Callable[[Any, int], tuple[Any, int]]
    write: Callable[[Any], bytes]
    flexible_request: bool
    flexible_response: bool
    charge: Charge
    tells_throttle: bool
    """The response has a ``throttle_time_ms``."""

    def frame(self, correlation_id: int, response: Any, body: bytes | None = None) -> bytes:
        """The response as bytes, length in front; ``body`` if it is encoded already."""
        if body is None:
            body = self.write(response)
        if self.flexible_response:
            return pack_tagged(len(body) + 5, correlation_id, 0) + body
        return pack_short(len(body) + 4, correlation_id) + body


@dataclass(slots=True, eq=False)
class PendingAnswer:
    """A deferred answer and how to write it."""

    dispatcher: Dispatcher
    route: CompiledRoute
    correlation_id: int
    request: Any
    deferred: Deferred
    exchange: Exchange | None = None
    """What is charged in the end, where quotas are set."""

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Call back with what `answer` gives."""
        self.deferred.when_done(lambda response: callback(self.answer(response)))

    def lost(self) -> None:
        """The connection is gone; what it asked for is charged all the same."""
        self.deferred.lost()
        if self.exchange is not None:
            self.dispatcher.charge(self.route, self.exchange, None)

    def answer(self, response: Any) -> bytes | Throttled:
        """The response, or the refusal that an exception means; no bytes where there can be neither: close
        the connection.

        Never raises: who keeps a promise is a timer, or another client's append, and must not be hit by it.
        """
        dispatcher, route = self.dispatcher, self.route
        try:
            if isinstance(response, Exception):
                response = dispatcher.refusal(route, self.request, response)
            if self.exchange is not None:
                return dispatcher.charged(route, self.exchange, response) or b""
            return dispatcher.frame(route, self.correlation_id, self.request, response)
        except CloseConnection:
            if self.exchange is not None:
                dispatcher.charge(route, self.exchange, None)
            return b""
        except Exception:
            log.exception("refusal cannot be written", extra={"api_key": self.route.api_key})
            return b""


class Dispatcher:
    """Answers frames. One per host."""

    def __init__(self, broker: Broker, routes: dict[int, Route]) -> None:
        self.broker = broker
        self.routes = routes
        self.compiled: dict[int, CompiledRoute] = {}
        """By API key and version as they stand in a request, read as one number."""
        self.now_ms = broker.clock.now_ms
        self.monotonic_ns = broker.clock.monotonic_ns
        self.quotas = broker.quotas
        self.unexpected_errors = 0
        """Exceptions that were bugs."""

    def answer(
        self, frame: bytes | memoryview, offset: int, connection: ConnectionContext
    ) -> bytes | PendingAnswer | Throttled | None:
        """Answer the request that starts at ``offset`` and ends with ``frame``.

        Returns:
            The response frame; or a pending one; or one after which the client is throttled; or None where
            the protocol has no answer.

        Raises:
            WireError: The bytes make no sense: close the connection.
            CloseConnection: The handler refuses by closing.
        """
        started_ns = self.monotonic_ns() if self.quotas.is_enabled else None
        try:
            api, correlation_id, client_id_bytes = unpack_header(frame, offset)
        except struct.error as error:
            raise WireError(f"a request of {len(frame) - offset} bytes has no header") from error
        route = self.compiled.get(api)
        if route is None:
            api_key, version = unpack_api(frame, offset)
            if api_key == API_VERSIONS_KEY and version not in self.routes[API_VERSIONS_KEY].versions:
                return self.unsupported_api_versions(correlation_id)
            route = self.compile(api_key, version)
        client_id, body = read_client_id(
            frame, offset + REQUEST_HEADER.size, client_id_bytes, route.flexible_request
        )
        request, _ = route.read(frame, body)
        context = RequestContext(
            connection, route.api_key, route.version, correlation_id, client_id, self.now_ms()
        )
        if started_ns is not None:
            return self.answer_and_charge(route, request, context, len(frame) - offset, started_ns)
        response = self.respond(route, request, context)
        if response.__class__ is Deferred:
            return PendingAnswer(self, route, correlation_id, request, response)
        return None if response is None else self.frame(route, correlation_id, request, response)

    def respond(self, route: CompiledRoute, request: Any, context: RequestContext) -> Any:
        """What the handler says, or what its error means.

        Raises:
            WireError: The bytes make no sense.
            CloseConnection: The handler refuses by closing, or the protocol has no answer to the request.
        """
        try:
            return route.handler(request, context, self.broker)
        except (CloseConnection, WireError):
            raise
        except Exception as error:  # noqa: BLE001  a handler's bug must not end the connection or the host
            return self.refusal(route, request, error)

    def answer_and_charge(
        self, route: CompiledRoute, request: Any, context: RequestContext, request_bytes: int, started_ns: int
    ) -> bytes | PendingAnswer | Throttled | None:
        """`answer` while quotas are set; a client that makes the host close is charged too."""
        exchange = Exchange(
            context=context,
            request=request,
            request_bytes=request_bytes,
            write=route.write,
            monotonic_ns=self.monotonic_ns,
        )
        try:
            response = self.respond(route, request, context)
        except CloseConnection:
            exchange.spent_ns = self.monotonic_ns() - started_ns
            self.charge(route, exchange, None)
            raise
        exchange.spent_ns = self.monotonic_ns() - started_ns
        if response.__class__ is Deferred:
            response.around = exchange.timed
            return PendingAnswer(self, route, context.correlation_id, request, response, exchange)
        return self.charged(route, exchange, response)

    def charge(self, route: CompiledRoute, exchange: Exchange, response: Any) -> Throttle:
        """Charge a request for what it cost."""
        exchange.now_ms = self.now_ms()
        exchange.response = response
        return route.charge(exchange, self.quotas)

    def charged(self, route: CompiledRoute, exchange: Exchange, response: Any) -> bytes | Throttled | None:
        """Charge a request and write its response, which says how long the client is throttled."""
        begin_ns = self.monotonic_ns()
        throttle = self.charge(route, exchange, response)
        response, frame = exchange.response, None
        if response is not None:
            if throttle.time_ms and route.tells_throttle:
                response.throttle_time_ms = throttle.time_ms
            correlation_id = exchange.context.correlation_id
            frame = self.frame(route, correlation_id, exchange.request, response, exchange.body)
        if exchange.network is not None:
            exchange.network(self.monotonic_ns() - begin_ns)
        return Throttled(frame, throttle, exchange) if throttle.time_ms else frame

    def refusal(self, route: CompiledRoute, request: Any, error: Exception) -> Any:
        """The response that an exception means: an `ApiError` says it, everything else is a bug.

        Raises:
            CloseConnection: The protocol has no answer to this request.
        """
        if isinstance(error, ApiError):
            return route.refusal(request, error.code, error.message)
        self.unexpected_errors += 1
        log.error(
            "handler failed",
            exc_info=error,
            extra={"api_key": route.api_key, "api_version": route.version},
        )
        return route.refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    def frame(
        self,
        route: CompiledRoute,
        correlation_id: int,
        request: Any,
        response: Any,
        body: bytes | None = None,
    ) -> bytes:
        """The response as bytes; one that cannot be written is a bug of its handler."""
        try:
            return route.frame(correlation_id, response, body)
        except Exception as error:  # noqa: BLE001  as in `answer`
            bug = error
        return route.frame(correlation_id, self.refusal(route, request, bug))

    def compile(self, api_key: int, version: int) -> CompiledRoute:
        """Look up what a request needs, once per API and version."""
        route = self.routes.get(api_key)
        if route is None:
            raise WireError(f"unknown api key {api_key}")
        if version not in route.versions:
            raise WireError(f"unsupported version {version} of api key {api_key}")
        compiled = CompiledRoute(
            api_key=api_key,
            version=version,
            handler=route.handler,
            refusal=route.refusal,
            read=reader(route.request, version),
            write=writer(route.response, version),
            flexible_request=version in route.request.FLEXIBLE,
            # clients parse this response before they know anything: its header is always v0 (KIP-511)
            flexible_response=version in route.response.FLEXIBLE and api_key != API_VERSIONS_KEY,
            charge=route.charge,
            tells_throttle="throttle_time_ms" in route.response.__dataclass_fields__,
        )
        self.compiled[(api_key << 16) + version] = compiled
        return compiled

    def unsupported_api_versions(self, correlation_id: int) -> bytes:
        """ApiVersions of a future: a v0 answer that names the versions of ApiVersions alone (KIP-511). Free:
        whose it is stands where nobody can read it.
        """
        route = self.routes[API_VERSIONS_KEY]
        response = route.refusal(None, ErrorCode.UNSUPPORTED_VERSION, None)
        return self.compile(API_VERSIONS_KEY, 0).frame(correlation_id, response)
