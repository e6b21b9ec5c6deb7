"""The rules by which a client asks for subscriptions and pushes, without sockets and clocks.

The rules of Java's clients and librdkafka are those of their sources, and those of franz-go of
``metrics_714.go`` (v1.22): they differ in the jitter of the first push and in what an error does.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.types import NIL_UUID

DEFAULT_INTERVAL_MS = 300_000
"""Taken for an interval that is not positive."""
NOT_SENT = 0
"""The subscription id before the first answer."""


class Next(Enum):
    """The reaction of a client to an answer."""

    PUSH = auto()
    """Push after the interval."""
    ASK_LATER = auto()
    """Ask for its subscription after the interval."""
    ASK_NOW = auto()
    STOP = auto()
    """Send no telemetry for the rest of its life."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """A client library."""

    name: str
    recordings: tuple[str, ...]
    """Names of `odradek.testing.pushes.recorded_clients`; each client of a kind takes one of them."""
    jitter: tuple[float, float]
    """Bounds of the first push after an answer with metrics, in intervals."""
    on_error: Mapping[ErrorCode, Next]
    """By error of a push."""
    other_errors: Next
    least_interval_ms: int = 0
    retry_ms: int = DEFAULT_INTERVAL_MS
    """Time until a refused request for subscriptions is repeated, if no interval is known."""
    retry_is_fixed: bool = False
    """True if that time also holds when an interval is known."""
    reconnect_ms: tuple[int, int]
    """The first and the longest wait before a connection is opened again; each wait doubles."""


FATAL = {ErrorCode.INVALID_REQUEST: Next.STOP, ErrorCode.INVALID_RECORD: Next.STOP}
KINDS = {
    "java": Kind(
        name="java",
        recordings=("java-producer", "java-consumer"),
        jitter=(0.5, 1.5),
        on_error={
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID: Next.ASK_NOW,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: Next.ASK_NOW,
            ErrorCode.TELEMETRY_TOO_LARGE: Next.ASK_LATER,
            ErrorCode.THROTTLING_QUOTA_EXCEEDED: Next.ASK_LATER,
        },
        other_errors=Next.STOP,
        reconnect_ms=(50, 1_000),
    ),
    "librdkafka": Kind(
        name="librdkafka",
        recordings=("librdkafka-producer", "librdkafka-consumer"),
        jitter=(0.8, 1.2),
        on_error={
            **FATAL,
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID: Next.ASK_NOW,
            ErrorCode.TELEMETRY_TOO_LARGE: Next.PUSH,
        },
        other_errors=Next.ASK_LATER,
        retry_ms=30_000,
        reconnect_ms=(100, 10_000),
    ),
    "franz-go": Kind(
        name="franz-go",
        recordings=("franz-go",),
        jitter=(0.5, 1.5),
        on_error={**FATAL, ErrorCode.UNKNOWN_SUBSCRIPTION_ID: Next.ASK_NOW},
        other_errors=Next.PUSH,
        least_interval_ms=1_000,
        retry_ms=30_000,
        retry_is_fixed=True,
        reconnect_ms=(250, 5_000),
    ),
}


@dataclass(slots=True, eq=False)
class Client:
    """One client instance."""

    number: int
    kind: Kind
    source: random.Random = field(repr=False)
    """Shared by all clients: 50 000 of them would take 125 MB."""
    settled: bool = False
    """True for a client of a fleet that has run for long: its first push is due anywhere in the interval."""
    instance_id: bytes = NIL_UUID
    subscription_id: int = NOT_SENT
    interval_ms: int = 0
    codec: int = 0
    asks: bool = True
    """True if the next request asks for the subscription."""
    stopped: bool = False
    recording: str = field(init=False)

    def __post_init__(self) -> None:
        self.recording = self.source.choice(self.kind.recordings)

    @property
    def client_id(self) -> str:
        return f"fleet-{self.kind.name}-{self.number:06}"

    def ask(self) -> GetTelemetrySubscriptionsRequest:
        return GetTelemetrySubscriptionsRequest(client_instance_id=self.instance_id)

    def push(self, metrics: bytes, *, terminating: bool = False) -> PushTelemetryRequest:
        """A push of compressed metrics."""
        return PushTelemetryRequest(
            client_instance_id=self.instance_id,
            subscription_id=self.subscription_id,
            terminating=terminating,
            compression_type=self.codec,
            metrics=metrics,
        )

    def answered(self, response: GetTelemetrySubscriptionsResponse) -> float | None:
        """Take an answer to `ask`. Return the time until the next request in milliseconds; None to stop."""
        if response.error_code:
            if response.error_code in FATAL:
                self.stopped = True
                return None
            return float(self.kind.retry_ms if self.kind.retry_is_fixed else self.interval_or_retry_ms)
        self.instance_id = response.client_instance_id
        self.subscription_id = response.subscription_id
        self.interval_ms = response.push_interval_ms if response.push_interval_ms > 0 else DEFAULT_INTERVAL_MS
        self.codec = (response.accepted_compression_types or [0])[0]
        self.asks = not response.requested_metrics
        if self.asks:
            return float(self.interval_ms)
        bounds = (0.0, 1.0) if self.settled else self.kind.jitter
        self.settled = False
        return self.source.uniform(*bounds) * self.pause_ms

    @property
    def says_goodbye(self) -> bool:
        """True if it sends a last push when it is closed."""
        return not self.asks and not self.stopped

    @property
    def pause_ms(self) -> int:
        """The time between two pushes, milliseconds."""
        return max(self.interval_ms, self.kind.least_interval_ms)

    @property
    def interval_or_retry_ms(self) -> int:
        return self.interval_ms or self.kind.retry_ms

    def pushed(self, error: int) -> float | None:
        """Take the answer to a push. Return the time until the next request in milliseconds; None to stop."""
        after = Next.PUSH if not error else self.after_error(error)
        if after is Next.STOP:
            self.stopped = True
            return None
        self.asks = after is not Next.PUSH
        return 0.0 if after is Next.ASK_NOW else float(self.pause_ms)

    def after_error(self, error: int) -> Next:
        known = error in set(ErrorCode)
        return self.kind.on_error.get(ErrorCode(error), self.kind.other_errors) if known else Next.STOP

    def unanswered(self) -> float:
        """The connection was lost with a request in flight. Return the time until the next request."""
        return float(self.pause_ms if self.interval_ms else 0)

    def reconnect_ms(self, attempt: int) -> float:
        """The wait before a connection is opened again, with 20 % jitter as in the clients."""
        first, longest = self.kind.reconnect_ms
        return min(first * 2.0**attempt, longest) * self.source.uniform(0.8, 1.2)


def mixed(shares: Mapping[str, float], clients: int) -> list[Kind]:
    """The kind of each client, so that every stretch of clients has about the same shares.

    Raises:
        ValueError: There is no such kind, or no share is above 0.
    """
    unknown = [name for name in shares if name not in KINDS]
    if unknown:
        raise ValueError(f"unknown kind of client {unknown[0]!r}: expected one of {', '.join(KINDS)}")
    total = sum(shares.values())
    if min(shares.values(), default=0) < 0 or total <= 0:
        raise ValueError("expected shares of at least 0, and one above 0")
    found, owed = [], dict.fromkeys(shares, 0.0)
    for _ in range(clients):
        for name, share in shares.items():
            owed[name] += share / total
        name = max(owed, key=lambda each: owed[each])
        owed[name] -= 1
        found.append(KINDS[name])
    return found
