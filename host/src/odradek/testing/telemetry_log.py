"""The pushes that a host received, for a test to inspect."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.testing.arrivals import Arrivals, Arrived, ArrivedList, NothingCame
from odradek.testing.conformance import Handshake, Pushed
from odradek.testing.data_points import DataPoint, data_points
from odradek.testing.fault import Fault, error_code
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

if TYPE_CHECKING:
    from odradek.testing.conformance import ConformanceReport

__tracebackhide__ = True  # pytest shows where the test waits, not these frames

KEPT = 1_000
"""Number of pushes that are kept with their payloads; the oldest are dropped."""


@dataclass(slots=True, eq=False, kw_only=True)
class Push(Arrived):
    """One PushTelemetry request, accepted or not."""

    number: int
    """Number of the push, counted from 1 in the order of the responses."""
    context: RequestContext
    request: PushTelemetryRequest = field(repr=False)
    """The request of the client: ids, ``terminating``, ``compression_type``, compressed ``metrics``."""
    error: ErrorCode | None
    """The error code of the response; None if the connection was dropped instead."""
    data: bytes = field(repr=False)
    """The payload as plugins see it, decompressed and labeled; empty if the push was empty or not stored."""
    fault: Fault | None = None
    """The fault that hit the push; None if none did."""
    decoded: list[DataPoint] | None = field(default=None, repr=False)

    @property
    def client_id(self) -> str | None:
        return self.context.client_id

    @property
    def terminating(self) -> bool:
        """Whether it is the terminating push of the client."""
        return self.request.terminating

    @property
    def points(self) -> list[DataPoint]:
        """All data points, in the client's order."""
        if self.decoded is None:
            with suppress(DecodeError):  # with Kafka's error policy, a payload may be any bytes
                self.decoded = list(data_points(self.data))
        return self.decoded or []

    @property
    def metrics(self) -> list[str]:
        """The names of its metrics, without duplicates."""
        return list(dict.fromkeys(point.metric for point in self.points))

    def __str__(self) -> str:
        outcome = "dropped" if self.error is None else self.error.name
        last = "terminating, " if self.terminating else ""
        size = len(self.request.metrics or b"")
        return f"{self.client_id}: {outcome}, {last}{size} bytes, {len(self.metrics)} metrics"

    def exchange(self) -> Pushed:
        """The push in the form of a conformance report."""
        return Pushed(
            context=self.context,
            client_instance_id=self.request.client_instance_id,
            subscription_id=self.request.subscription_id,
            terminating=self.terminating,
            codec=self.request.compression_type,
            sent_bytes=len(self.request.metrics or b""),
            error=self.error,
            data=self.data,
        )


class TelemetryLog:
    """A receiver that keeps pushes and lets a test wait for them.

    Args:
        arrivals: Notified of every push.
        now_ms: The host's clock; None if a test controls it, which makes rules about time impossible to
            check.
    """

    def __init__(self, arrivals: Arrivals, now_ms: Callable[[], int] | None = None) -> None:
        self.arrivals = arrivals
        self.now_ms = now_ms
        self.kept: deque[Push] = deque(maxlen=KEPT)
        self.exchanges: deque[Handshake | Push] = deque(maxlen=2 * KEPT)
        """The newest pushes and handshakes, in the order of the responses."""
        self.opened: dict[RequestContext, bytes] = {}
        """Payloads of pushes that are not answered yet."""
        self.count = 0

    def client_receiver(self) -> TelemetryLog:
        """Return itself: it is its own provider."""
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Keep the payload of an accepted push until the response is known."""
        self.opened[context] = payload.data

    def answered(
        self,
        context: RequestContext,
        request: PushTelemetryRequest,
        error: ErrorCode | None,
        fault: Fault | None,
    ) -> None:
        """Add a push whose response is known. Called on the host's loop."""
        data = self.opened.pop(context, b"")
        # the received bytes are a view into a buffer that is reused
        request.metrics = bytes(request.metrics or b"")
        with self.arrivals.condition:
            self.count += 1
            push = Push(
                number=self.count, context=context, request=request, error=error, data=data, fault=fault
            )
            self.kept.append(push)
            self.exchanges.append(push)
            self.arrivals.notify()

    def greeted(
        self,
        context: RequestContext,
        request: GetTelemetrySubscriptionsRequest,
        error: ErrorCode | None,
        response: GetTelemetrySubscriptionsResponse | None,
    ) -> None:
        """Add a GetTelemetrySubscriptions whose response is known. Called on the host's loop."""
        handshake = Handshake(
            context=context,
            asked_id=bytes(request.client_instance_id),
            error=error,
            response=response or GetTelemetrySubscriptionsResponse(),
        )
        with self.arrivals.condition:
            self.exchanges.append(handshake)
            self.arrivals.notify()

    def forget(self) -> None:
        """Drop all pushes. Conformance reports still use them: they cover a client from its handshake on."""
        with self.arrivals.condition:
            self.kept.clear()

    def told_nothing(self) -> Iterator[tuple[str | None, int]]:
        """Yield the clients whose newest subscription is empty, each with the ms until it asks again."""
        with self.arrivals.condition:
            handshakes = [each for each in self.exchanges if isinstance(each, Handshake)]
        for client_id, newest in {each.context.client_id: each for each in handshakes}.items():
            if newest.error is ErrorCode.NONE and not newest.response.requested_metrics:
                yield client_id, newest.response.push_interval_ms

    @property
    def pushes(self) -> list[Push]:
        """The newest pushes, oldest first, including refused and empty ones."""
        with self.arrivals.condition:
            return list(self.kept)

    def conformance(self, client_id: str) -> ConformanceReport:
        """Report how a client has implemented KIP-714 so far: its standard metrics and its behavior.

        Args:
            client_id: The client id, or a pattern with ``*``. All client instances are reported together.

        Raises:
            NothingCame: The client has neither asked for a subscription nor pushed.
        """
        with self.arrivals.condition:
            found = [
                each if isinstance(each, Handshake) else each.exchange()
                for each in self.exchanges
                if fnmatchcase(each.context.client_id or "", client_id)
            ]
        if not found:
            raise NothingCame("\n".join([f"nothing from client {client_id}", *self.arrivals.explain()]))
        until_ms = None if self.now_ms is None else self.now_ms()
        from odradek.testing.conformance import Observation, conformance_report  # few tests ask for it

        seen = Observation(exchanges=found, timed=self.now_ms is not None, until_ms=until_ms)
        return conformance_report(client_id, seen)

    def wait_for(
        self,
        metric: str | None = None,
        *,
        client_id: str | None = None,
        timeout_s: float = 5,
        after: Push | None = None,
    ) -> ArrivedList[DataPoint]:
        """Wait for a metric and return its data points in the first push that has some.

        Await it in a coroutine.

        Args:
            metric: Name of the metric, or a pattern with ``*``; None for all metrics of the push.
            client_id: The client id, or a pattern with ``*``; None for any client.
            timeout_s: Timeout by the machine's clock.
            after: Ignore this push and earlier ones.

        Raises:
            NothingCame: No data point arrived in time. The message lists what arrived instead.
        """

        def found() -> ArrivedList[DataPoint] | None:
            for push in self.matching(client_id, after):
                points = ArrivedList(
                    point for point in push.points if metric is None or fnmatchcase(point.metric, metric)
                )
                if points:
                    return points
            return None

        wanted = f"data point of metric {metric or '(any)'} of client {client_id or '(any)'}"
        return self.arrivals.wait_for(found, timeout_s, wanted)

    def wait_for_push(
        self,
        *,
        client_id: str | None = None,
        error: ErrorCode | str = ErrorCode.NONE,
        terminating: bool | None = None,
        timeout_s: float = 5,
        after: Push | None = None,
    ) -> Push:
        """Wait for the first push with this outcome, which may be empty. Await it in a coroutine.

        Raises:
            NothingCame: No such push arrived in time. The message lists what arrived instead.
        """
        code = error_code(error)

        def found() -> Push | None:
            for push in self.matching(client_id, after):
                if push.error == code and terminating in (None, push.terminating):
                    return push
            return None

        kind = "" if terminating is None else "terminating " if terminating else "not terminating "
        wanted = f"{kind}push answered {code.name} of client {client_id or '(any)'}"
        return self.arrivals.wait_for(found, timeout_s, wanted)

    def matching(self, client_id: str | None, after: Push | None) -> Iterator[Push]:
        """Yield the pushes of a client that came after a given push."""
        first = 0 if after is None else after.number
        for push in self.kept:
            if push.number > first and (client_id is None or fnmatchcase(push.client_id or "", client_id)):
                yield push
