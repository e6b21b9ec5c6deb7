"""From a frame to an answer, and the one place that turns errors into responses."""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from odradek.broker.answering import Answering
from odradek.broker.dispatch.administration import audit_refusal
from odradek.broker.dispatch.error_log import log_errors
from odradek.broker.dispatch.routes import API_VERSIONS_KEY, CloseConnection, CompiledRoute, Route
from odradek.broker.dispatch.throttling import Exchange, SpentTime, Throttle, Throttled, tell_throttle
from odradek.broker.told_members import tell_member
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.telemetry.group_incidents import OF_MEMBERS
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.codec import SteppedRead
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import read_client_id
from odradek.wire.parts import Parts

log = logging.getLogger(__name__)

# API key and version in one number, correlation id, length of the client id: the same in all versions
REQUEST_HEADER = struct.Struct(">iih")
unpack_api = struct.Struct(">hh").unpack_from
unpack_header = REQUEST_HEADER.unpack_from

LARGE_REQUEST_BYTES = 8_192
"""A request up to this size is read in one piece, which takes two milliseconds at most."""

Frame = bytes | Parts
Answer = Frame | Throttled | Deferred[Any] | None
"""A response frame, a frame that throttles its client, a deferred of either, or None if the protocol has no
answer. A deferred frame may be None for the same reason, or empty, which closes the connection."""


def refuse_client_id(_request: Any, context: RequestContext, broker: Answering) -> None:
    """The handler of every request whose client id is too long."""
    broker.names.refuse("client id", len(context.client_id or ""))


class Dispatcher:
    """Answers frames. One per host."""

    def __init__(self, broker: Answering, routes: Mapping[int, Route]) -> None:
        self.broker = broker
        self.routes = routes
        self.compiled: dict[int, CompiledRoute] = {}
        """By API key and version, read from a request as one number."""
        self.now_ms = broker.clock.now_ms
        self.monotonic_ms = broker.clock.monotonic_ms
        self.monotonic_ns = broker.clock.monotonic_ns
        self.quotas = broker.quotas
        self.longest_client_id = broker.names.most
        """In characters."""
        self.logs_errors = log.isEnabledFor(logging.DEBUG)
        """Asked once: each request would pay for the question."""
        self.unexpected_errors = 0
        """Exceptions that were bugs."""

    def answer(self, frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Answer:
        """Answer the request that starts at ``offset`` and ends with ``frame``.

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
            self.compile(api_key, version)
            return self.answer(frame, offset, connection)  # compiling is not charged to the first client
        client_id, body = read_client_id(
            frame, offset + REQUEST_HEADER.size, client_id_bytes, route.flexible_request
        )
        if client_id_bytes > self.longest_client_id < len(client_id or ""):
            route = replace(route, handler=refuse_client_id)
        context = RequestContext(
            connection, route.api_key, route.version, correlation_id, client_id, self.now_ms()
        )
        size_bytes = len(frame) - offset
        if size_bytes > LARGE_REQUEST_BYTES and route.takes_steps:
            reading = route.read_in_steps(frame, body, self.broker.steps.large_list)
            return self.answer_large(route, reading, context, size_bytes)
        return self.answer_read(route, route.read(frame, body)[0], context, size_bytes, started_ns)

    def answer_read(
        self,
        route: CompiledRoute,
        request: Any,
        context: RequestContext,
        size_bytes: int,
        started_ns: int | None,
    ) -> Answer:
        """Answer a request that has been read. ``started_ns`` is None while there are no quotas.

        Raises:
            WireError, CloseConnection: As in `answer`.
        """
        if started_ns is not None:
            return self.answer_and_charge(route, request, context, size_bytes, started_ns)
        response = self.respond(route, request, context)
        if response.__class__ is Deferred:
            response.finish = partial(self.finished, route, request, context, None)
            return response
        return None if response is None else self.frame(route, context, request, response)

    def answer_large(
        self, route: CompiledRoute, reading: SteppedRead, context: RequestContext, size_bytes: int
    ) -> Answer:
        """Read a request in steps, because reading twenty thousand elements takes milliseconds; then answer.

        Raises:
            WireError, CloseConnection: As in `answer`, if it is found in the first turn.
        """
        spent = SpentTime(monotonic_ns=self.monotonic_ns)

        def answer(found: tuple[Any, int]) -> Answer:
            started_ns = self.monotonic_ns() - spent.spent_ns if self.quotas.is_enabled else None
            return self.answer_read(route, found[0], context, size_bytes, started_ns)

        found = spent.timed(partial(self.broker.steps.answer, reading, droppable=True))
        if not isinstance(found, Deferred):
            return answer(found)
        found.around, found.finish = spent.timed, self.ended
        return found.then(answer)

    def ended(self, outcome: Any) -> Any:
        """The answer to a request that was read in steps, or the `WireError` that ends its connection."""
        if isinstance(outcome, CloseConnection):
            return b""
        if isinstance(outcome, Exception) and not isinstance(outcome, WireError):
            self.unexpected_errors += 1
            log.error("request cannot be read", exc_info=outcome)
            return b""
        return outcome

    def respond(self, route: CompiledRoute, request: Any, context: RequestContext) -> Any:
        """The handler's response, or the response that its error means.

        Raises:
            WireError: The bytes make no sense.
            CloseConnection: The handler refuses by closing, or the protocol has no answer to the request.
        """
        try:
            return route.handler(request, context, self.broker)
        except (CloseConnection, WireError):
            raise
        except Exception as error:  # noqa: BLE001  a handler's bug must not end the connection or the host
            return self.refusal(route, request, context, error)

    def answer_and_charge(
        self, route: CompiledRoute, request: Any, context: RequestContext, request_bytes: int, started_ns: int
    ) -> Answer:
        """`answer` while quotas are set. A client whose request closes the connection is charged too."""
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
            response.finish = partial(self.finished, route, request, context, exchange)
            response.gone = partial(self.charge, route, exchange, None)
            return response
        return self.charged(route, exchange, response)

    def finished(
        self,
        route: CompiledRoute,
        request: Any,
        context: RequestContext,
        exchange: Exchange | None,
        outcome: Any,
    ) -> Frame | Throttled | None:
        """The frame of a deferred response, or of the refusal that an exception means. It is None if the
        protocol has no answer, and empty, which closes the connection, if an exception has none.

        Never raises: the caller is a timer, or another client's append, and must not be hit by an exception.
        """
        try:
            if isinstance(outcome, CloseConnection):
                raise outcome
            if isinstance(outcome, Exception):
                outcome = self.refusal(route, request, context, outcome)
            if exchange is not None:
                return self.charged(route, exchange, outcome)
            return None if outcome is None else self.frame(route, context, request, outcome)
        except CloseConnection:
            if exchange is not None:
                self.charge(route, exchange, None)
            return b""
        except Exception:
            log.exception("refusal cannot be written", extra={"api_key": route.api_key})
            return b""

    def charge(self, route: CompiledRoute, exchange: Exchange, response: Any) -> Throttle:
        """Charge a request for its cost."""
        exchange.now_ms = self.monotonic_ms()
        exchange.response = response
        return route.charge(exchange, self.quotas)

    def charged(self, route: CompiledRoute, exchange: Exchange, response: Any) -> Frame | Throttled | None:
        """Charge a request and write its response, which tells how long the client is throttled."""
        begin_ns = self.monotonic_ns()
        throttle = self.charge(route, exchange, response)
        response, frame = exchange.response, None
        if response is not None:
            if throttle.time_ms and route.tells_throttle:
                response.throttle_time_ms = throttle.time_ms
            frame = self.frame(route, exchange.context, exchange.request, response, exchange.body)
        if exchange.network is not None:
            exchange.network(self.monotonic_ns() - begin_ns)
        if not throttle.time_ms:
            return frame
        tell_throttle(self.broker.incidents, exchange.context, throttle)
        return Throttled(frame, throttle, exchange.client, exchange.now_ms)

    def refusal(self, route: CompiledRoute, request: Any, context: RequestContext, error: Exception) -> Any:
        """The response that an exception means. An `ApiError` is a refusal; any other is a bug and is logged.

        Raises:
            CloseConnection: The protocol has no answer to this request.
        """
        audit_refusal(request, context, self.broker, error)
        if isinstance(error, ApiError):
            return route.refusal(request, error.code, error.message)
        self.unexpected_errors += 1
        log.error(
            "handler failed", exc_info=error, extra={"api_key": route.api_key, "api_version": route.version}
        )
        return route.refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)

    def frame(
        self,
        route: CompiledRoute,
        context: RequestContext,
        request: Any,
        response: Any,
        body: Frame | None = None,
    ) -> Frame:
        """The frame of a response. If it cannot be encoded, that is a bug of its handler, and the answer."""
        if self.logs_errors:
            log_errors(request, context, response)
        if route.api_key in OF_MEMBERS and self.broker.incidents is not None:
            tell_member(self.broker.incidents, context, request, response.error_code)
        try:
            return route.frame(context.correlation_id, response, body)
        except Exception as error:  # noqa: BLE001  as in `respond`
            refusal = self.refusal(route, request, context, error)
        return route.frame(context.correlation_id, refusal)

    def route_of(self, api_key: int, version: int) -> Route:
        """The route of an API.

        Raises:
            WireError: The host does not serve this API, or not in this version.
        """
        route = self.routes.get(api_key)
        if route is None:
            raise WireError(f"unknown api key {api_key}")
        if version not in route.versions:
            raise WireError(f"unsupported version {version} of api key {api_key}")
        return route

    def compile(self, api_key: int, version: int) -> CompiledRoute:
        """Look up everything a request needs, once per API and version: its codecs are compiled here.

        Raises:
            WireError: As in `route_of`.
        """
        compiled = self.compiled[(api_key << 16) + version] = self.route_of(api_key, version).at(version)
        return compiled

    def refuse(
        self, frame: bytes | memoryview, offset: int, connection: ConnectionContext, code: ErrorCode
    ) -> Frame:
        """The response to a request that is refused, whatever it asks for.

        Raises:
            WireError: The bytes make no sense.
            CloseConnection: The protocol has no answer to this request.
        """
        api, correlation_id, client_id_bytes = unpack_header(frame, offset)
        route = self.compiled.get(api) or self.compile(*unpack_api(frame, offset))
        client_id, body = read_client_id(
            frame, offset + REQUEST_HEADER.size, client_id_bytes, route.flexible_request
        )
        context = RequestContext(
            connection, route.api_key, route.version, correlation_id, client_id, self.now_ms()
        )
        request = route.read(frame, body)[0]
        return self.frame(route, context, request, route.refusal(request, code, None))

    def unsupported_api_versions(self, correlation_id: int) -> Frame:
        """ApiVersions of a version we do not know: a v0 response that lists only the versions of ApiVersions
        (KIP-511). Not charged: the client id is in a header whose format we do not know.
        """
        route = self.routes[API_VERSIONS_KEY]
        response = route.refusal(None, ErrorCode.UNSUPPORTED_VERSION, None)
        return self.compile(API_VERSIONS_KEY, 0).frame(correlation_id, response)
