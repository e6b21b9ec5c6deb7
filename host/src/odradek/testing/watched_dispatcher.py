"""A dispatcher that records requests for a test and applies its faults.

It wraps the host's handlers, so the host itself needs no code for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import CloseConnection, CompiledRoute, Route
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.testing.fault import Fault
from odradek.testing.request_log import Request, RequestLog
from odradek.testing.telemetry_log import TelemetryLog
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.api_names import api_name
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.parts import Parts

HEADER_BYTES = (4, 5)
"""Size of a response header: the correlation id and, in flexible versions, an empty tag section."""


class WatchedDispatcher(Dispatcher):
    """Answers like its base class unless a fault applies."""

    broker: Broker

    def __init__(
        self,
        broker: Broker,
        routes: Mapping[int, Route],
        requests: RequestLog,
        telemetry: TelemetryLog,
        faults: list[Fault],
    ) -> None:
        super().__init__(broker, routes)
        self.requests = requests
        self.telemetry = telemetry
        self.faults = faults
        self.request_bytes = 0
        self.current: Request | None = None
        """The request whose response is encoded next. Handlers and deferred answers run one at a time."""

    def answer(self, frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Any:
        self.request_bytes = len(frame) - offset
        return super().answer(frame, offset, connection)

    def compile(self, api_key: int, version: int) -> CompiledRoute:
        compiled = super().compile(api_key, version)
        compiled.handler = partial(self.handle, self.routes[api_key], compiled.handler)
        compiled.write = partial(self.write, compiled.write, HEADER_BYTES[compiled.flexible_response])
        return compiled

    def refusal(self, route: CompiledRoute, request: Any, context: RequestContext, error: Exception) -> Any:
        if isinstance(error, CloseConnection):
            raise error
        return super().refusal(route, request, context, error)

    def write(self, write: Callable[[Any], bytes | Parts], header_bytes: int, response: Any) -> bytes | Parts:
        """Encode the response to the current request, changed by its fault."""
        request, fault = self.current, self.current.fault if self.current is not None else None
        if fault is not None and fault.throttle_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = max(response.throttle_time_ms, fault.throttle_ms)
        body = write(response) if fault is None or fault.garbage is None else fault.garbage
        if request is not None:
            request.response_bytes = header_bytes + len(body)
        return body

    def handle(
        self,
        route: Route,
        handler: Callable[[Any, RequestContext, Broker], Any],
        request: Any,
        context: RequestContext,
        broker: Broker,
    ) -> Any:
        """Record a request and call the handler of its API, or apply a fault."""
        api = api_name(route.request.API_KEY)
        fault = next((each for each in self.faults if self.hits(each, api, request, context)), None)
        row = Request(
            api=api,
            version=context.api_version,
            client_id=context.client_id,
            context=context,
            request_bytes=self.request_bytes,
            fault=fault,
        )
        if fault is not None:
            fault.used += 1
        self.requests.add(row)
        try:
            response = self.outcome(route, handler, request, context, fault)
        except ApiError as error:
            response = route.refusal(request, error.code, error.message)
        except Exception:
            self.finish(row, request, None)
            raise
        if isinstance(response, Deferred) or (fault is not None and fault.delay_ms and response is not None):
            return self.later(row, request, response)
        self.finish(row, request, response)
        if row.drops == "after":
            raise CloseConnection(str(fault))
        return response

    def outcome(
        self,
        route: Route,
        handler: Callable[[Any, RequestContext, Broker], Any],
        request: Any,
        context: RequestContext,
        fault: Fault | None,
    ) -> Any:
        """The result of the handler, or of the fault instead."""
        if fault is not None and fault.drop == "before":
            raise CloseConnection(str(fault))
        if fault is None or fault.error is None:
            return handler(request, context, self.broker)
        if fault.scope is not None:
            refused = route.refusal(fault.scope.affected(request, self.broker), fault.error, None)
            return fault.scope.answer(
                request, refused, context, self.broker, lambda rest: handler(rest, context, self.broker)
            )
        if isinstance(request, PushTelemetryRequest):
            self.refuse_push(request, fault.error)
        if "error_code" in route.response.__dataclass_fields__:
            return route.response(error_code=fault.error)
        return route.refusal(request, fault.error, None)

    def hits(self, fault: Fault, api: str, request: Any, context: RequestContext) -> bool:
        scope = fault.scope
        return fault.hits(api, context) and (scope is None or scope.is_named_in(request, self.broker))

    def refuse_push(self, request: PushTelemetryRequest, error: ErrorCode) -> None:
        """Store a refusal as the manager would: it determines which request the client may send next."""
        instance = self.broker.telemetry.client_instances.cached.get(request.client_instance_id)
        if instance is not None:
            instance.maybe_update_push(self.monotonic_ms())
            instance.last_known_error = error

    def later(self, row: Request, request: Any, response: Any) -> Deferred[Any]:
        """A deferred that completes after the handler's, and after the fault's delay."""
        inner: Deferred[Any] = response if isinstance(response, Deferred) else Deferred()
        if inner is not response:
            inner.complete(response)
        outer = Deferred[Any]()
        outer.abandon = inner.lost
        outer.hurry = lambda: None if inner.hurry is None else inner.hurry()
        inner.around = lambda run: run() if outer.around is None else outer.around(run)
        delay_ms = 0 if row.fault is None else row.fault.delay_ms

        def keep(found: Any) -> None:
            self.finish(row, request, found)
            outer.complete(CloseConnection(str(row.fault)) if row.drops == "after" else found)

        def arrived(found: Any) -> None:
            if not delay_ms:
                keep(found)
                return
            task = self.broker.timer.schedule(self.monotonic_ms() + delay_ms, lambda: keep(found))
            outer.abandon = task.cancel

            def hurried() -> None:
                task.cancel()
                keep(found)

            outer.hurry = hurried

        inner.when_done(arrived)
        return outer

    def finish(self, row: Request, request: Any, response: Any) -> None:
        """Record the outcome of a request. Its response, if there is one, is encoded next."""
        self.current = row
        error = None if row.drops else error_of(response)
        if isinstance(request, PushTelemetryRequest):
            self.telemetry.answered(row.context, request, error, row.fault)
        elif isinstance(request, GetTelemetrySubscriptionsRequest):
            self.telemetry.greeted(row.context, request, error, getattr(response, "response", response))
        with self.requests.arrivals.condition:
            row.error, row.answered = error, True
            self.requests.arrivals.notify()


def error_of(response: Any) -> ErrorCode | None:
    """The error of a whole response, which may be wrapped for the quotas."""
    if isinstance(response, ApiError):
        return response.code
    code = getattr(getattr(response, "response", response), "error_code", None)
    return None if code is None else ErrorCode(code)
