"""What clients pushed to a host, for a test to look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from google.protobuf.message import DecodeError

from odradek.plugin.context import RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.testing.arrivals import Arrivals, NothingCame
from odradek.testing.conformance import ConformanceReport, Handshake, Observation, Pushed, conformance_report
from odradek.testing.data_points import DataPoint, data_points
from odradek.testing.fault import Fault, error_code
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

KEPT = 1_000
"""The newest so many pushes: they hold their payloads."""


@dataclass(slots=True, eq=False, kw_only=True)
class Push:
    """One PushTelemetry request, taken or not."""

    number: int
    """From 1 on, in the order of the answers."""
    context: RequestContext
    request: PushTelemetryRequest = field(repr=False)
    """As the client sent it: ids, ``terminating``, ``compression_type``, the compressed ``metrics``."""
    error: ErrorCode | None
    """What it was answered; None if it was not, because the connection was dropped."""
    data: bytes = field(repr=False)
    """The payload as plugins see it, opened and labeled; empty if it was refused or had none."""
    fault: Fault | None = None
    """Which one hit it."""
    decoded: list[DataPoint] | None = field(default=None, repr=False)

    @property
    def client_id(self) -> str | None:
        return self.context.client_id

    @property
    def terminating(self) -> bool:
        """The client's last one."""
        return self.request.terminating

    @property
    def points(self) -> list[DataPoint]:
        """All data points, in the client's order."""
        if self.decoded is None:
            with suppress(DecodeError):  # Kafka's error policy takes whatever comes
                self.decoded = list(data_points(self.data))
        return self.decoded or []

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics in it, each once."""
        return list(dict.fromkeys(point.metric for point in self.points))

    def __str__(self) -> str:
        outcome = "dropped" if self.error is None else self.error.name
        last = "terminating, " if self.terminating else ""
        size = len(self.request.metrics or b"")
        return f"{self.client_id}: {outcome}, {last}{size} bytes, {len(self.metrics)} metrics"

    def exchange(self) -> Pushed:
        """The same for a conformance report."""
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
    """A receiver that keeps what comes, and a way to wait for it.

    Args:
        arrivals: Told of everything that comes.
        now_ms: The host's time; None where a test drives it by hand, so that nothing can be said about time.
    """

    def __init__(self, arrivals: Arrivals, now_ms: Callable[[], int] | None = None) -> None:
        self.arrivals = arrivals
        self.now_ms = now_ms
        self.kept: deque[Push] = deque(maxlen=KEPT)
        self.exchanges: deque[Handshake | Push] = deque(maxlen=2 * KEPT)
        """The newest pushes with the handshakes between them, in the order of the answers."""
        self.opened: dict[RequestContext, bytes] = {}
        """Payloads whose push is not answered yet."""
        self.count = 0

    def client_receiver(self) -> TelemetryLog:
        """It offers itself."""
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """A push was taken; its answer follows."""
        self.opened[context] = payload.data

    def answered(
        self,
        context: RequestContext,
        request: PushTelemetryRequest,
        error: ErrorCode | None,
        fault: Fault | None,
    ) -> None:
        """The answer to a push is known. On the host's loop."""
        data = self.opened.pop(context, b"")
        # what was received is a view into a buffer that is used again
        request.metrics = bytes(request.metrics or b"")
        with self.arrivals.condition:
            self.count += 1
            push = Push(
                number=self.count, context=context, request=request, error=error, data=data, fault=fault
            )
            self.kept.append(push)
            self.exchanges.append(push)
            self.arrivals.condition.notify_all()

    def greeted(
        self,
        context: RequestContext,
        request: GetTelemetrySubscriptionsRequest,
        error: ErrorCode | None,
        response: GetTelemetrySubscriptionsResponse | None,
    ) -> None:
        """The answer to a client that asks for its subscription is known. On the host's loop."""
        handshake = Handshake(
            context=context,
            asked_id=bytes(request.client_instance_id),
            error=error,
            response=response or GetTelemetrySubscriptionsResponse(),
        )
        with self.arrivals.condition:
            self.exchanges.append(handshake)
            self.arrivals.condition.notify_all()

    def told_nothing(self) -> Iterator[tuple[str | None, int]]:
        """Clients whose newest subscription is empty, and how many ms later they ask again."""
        with self.arrivals.condition:
            handshakes = [each for each in self.exchanges if isinstance(each, Handshake)]
        for client_id, newest in {each.context.client_id: each for each in handshakes}.items():
            if newest.error is ErrorCode.NONE and not newest.response.requested_metrics:
                yield client_id, newest.response.push_interval_ms

    @property
    def pushes(self) -> list[Push]:
        """The newest pushes, oldest first, refused ones and empty ones too."""
        with self.arrivals.condition:
            return list(self.kept)

    def conformance(self, client_id: str) -> ConformanceReport:
        """What a client made of KIP-714 so far: the standard metrics it sent, and how it behaved.

        Args:
            client_id: Of the client, or a pattern with ``*``; all its client instances together.

        Raises:
            NothingCame: It has neither asked for a subscription nor pushed.
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
        seen = Observation(exchanges=found, timed=self.now_ms is not None, until_ms=until_ms)
        return conformance_report(client_id, seen)

    def wait_for(
        self,
        metric: str | None = None,
        *,
        client_id: str | None = None,
        timeout_s: float = 5,
        after: Push | None = None,
    ) -> list[DataPoint]:
        """The data points of a metric, from the first push that has some.

        Args:
            metric: Its name, or a pattern with ``*``; None for all metrics of the push.
            client_id: Of the client, or a pattern with ``*``; None for any.
            timeout_s: How long it may take, by the machine's clock.
            after: Look only at what came after this push.

        Raises:
            NothingCame: There was none in time; it says what came instead.
        """

        def found() -> list[DataPoint] | None:
            for push in self.matching(client_id, after):
                points = [
                    point for point in push.points if metric is None or fnmatchcase(point.metric, metric)
                ]
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
        """The first push with this outcome, empty ones too.

        Raises:
            NothingCame: There was none in time; it says what came instead.
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
        """Pushes of a client, later than one of them."""
        first = 0 if after is None else after.number
        for push in self.kept:
            if push.number > first and (client_id is None or fnmatchcase(push.client_id or "", client_id)):
                yield push
