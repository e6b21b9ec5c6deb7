"""Pushes that are refused and stored all the same, because their increments exist nowhere else.

A client forgets what it has pushed, whatever the answer is (KIP-714): each change of a subscription would
cost every client a push, or two: clients ask for their new subscription at once and push about an interval
later, and if that is earlier than an interval after the refused push, it is throttled. Clients get Kafka's
answers; only the host keeps what it already has.

A refused push of a client that never takes its subscription must not be a way around limits: one is stored in
half a push interval (a client waits at least that long), and ten until the client has pushed with the right
subscription id.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from odradek.metrics.metric_config import MetricConfig
from odradek.metrics.quota import Quota
from odradek.metrics.token_bucket import TokenBucket
from odradek.telemetry.client_metrics_instance import NEVER_MS
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.wire.compression import TooLarge
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

log = logging.getLogger(__name__)

UNKNOWN_SUBSCRIPTION_ID: Final = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
TELEMETRY_TOO_LARGE: Final = ErrorCode.TELEMETRY_TOO_LARGE
EARLY_PUSH: Final = ErrorCode.THROTTLING_QUOTA_EXCEEDED
LOSING_ERRORS: Final = frozenset({UNKNOWN_SUBSCRIPTION_ID, EARLY_PUSH, TELEMETRY_TOO_LARGE})
"""The client goes on pushing after these answers, without the metrics of the refused push."""
MOST_IN_A_ROW: Final = 10
"""Pushes of a client that are stored without an accepted one between them."""
LEAST_MEMORY_MS: Final = 600_000
"""A client is remembered for the longer of this and three push intervals."""
BURST_MS: Final = 60_000
"""The byte budget may be saved up for so long."""


class Loss(StrEnum):
    """Why the increments of a refused push are lost."""

    OFF = "off"
    """The configuration does not ask to keep such pushes."""
    SILENCED = "silenced"
    """The host wants no pushes at the moment."""
    EARLY = "early"
    """The last one was stored less than half a push interval ago."""
    STUBBORN = "stubborn"
    """`MOST_IN_A_ROW` were stored."""
    CLIENTS = "clients"
    """Too many clients have pushes stored at the same time."""
    BUDGET = "budget"
    """The byte budget is used up."""
    UNSOUND = "unsound"
    """It is not OTLP, or too large to be opened."""
    NOT_STORED = "not_stored"
    """The log or the cluster has not taken it."""


@dataclass(slots=True, eq=False)
class KeptClient:
    """A client whose last push was refused and stored."""

    last_ms: int = NEVER_MS
    """Monotonic time of the last push of the row."""
    forget_ms: int = NEVER_MS
    """Monotonic time after which the client is forgotten."""
    in_a_row: int = 0
    """Pushes since one with an unknown subscription id, with it."""
    is_charged: bool = False
    """The last push is charged to the byte budget."""
    fingerprint: int = 0
    """Of the last payload."""


@dataclass(slots=True, eq=False)
class KeptPushes:
    """Decides which refused pushes are stored, and counts those that are lost."""

    config: TelemetryConfig
    clients: OrderedDict[bytes, KeptClient] = field(default_factory=OrderedDict)
    """By client instance id; bounded as the client instances are. An accepted push removes its client."""
    lost: dict[tuple[ErrorCode, Loss], int] = field(default_factory=dict)
    """Refused pushes with metrics that are not stored, by answer and reason."""
    budget: TokenBucket | None = field(init=False)
    """For pushes that are early or too large, and do not follow a change; None if they are not stored."""

    def __post_init__(self) -> None:
        rate = self.config.keep_byte_rate
        quota = MetricConfig(samples=1, time_window_ms=BURST_MS, quota=Quota(rate))
        self.budget = TokenBucket(quota) if rate else None

    def lose(self, code: ErrorCode, loss: Loss) -> None:
        """Count a push whose increments are lost."""
        self.lost[code, loss] = self.lost.get((code, loss), 0) + 1

    def loss(
        self, request: PushTelemetryRequest, code: ErrorCode, interval_ms: int, now_ms: int
    ) -> Loss | None:
        """The reason not to store a refused push; None to store it, which is noted.

        Args:
            request: The push. One without metrics is noted too: the next push has some.
            code: Its answer, one of `LOSING_ERRORS`.
            interval_ms: The client's push interval.
            now_ms: On the monotonic clock.
        """
        size_bytes = len(request.metrics or b"")
        is_large = code is TELEMETRY_TOO_LARGE
        most_bytes = self.config.opened_max_bytes if is_large else self.config.telemetry_max_bytes
        if not 0 <= request.compression_type <= 4 or size_bytes > most_bytes:
            return Loss.UNSOUND
        client = self.clients.get(request.client_instance_id) or KeptClient()
        follows_change = code is UNKNOWN_SUBSCRIPTION_ID or (code is EARLY_PUSH and client.in_a_row > 0)
        loss = self.loss_after_change(client, interval_ms, now_ms) if follows_change else Loss.OFF
        is_charged = loss is not None and code is not UNKNOWN_SUBSCRIPTION_ID
        if is_charged:
            loss = self.loss_by_budget(now_ms)
        if loss is None and not self.remember(request.client_instance_id, client, interval_ms, now_ms):
            loss = Loss.CLIENTS
        if loss is None:
            client.fingerprint = fingerprint(request)
            client.is_charged = is_charged
            if not is_charged:
                client.last_ms = now_ms
                client.in_a_row += 1
        return loss

    def loss_after_change(self, client: KeptClient, interval_ms: int, now_ms: int) -> Loss | None:
        """As `loss`, of a push that was refused because the subscription had changed."""
        if not self.config.keep_unknown_subscription:
            return Loss.OFF
        if now_ms - client.last_ms < interval_ms // 2:
            return Loss.EARLY
        return Loss.STUBBORN if client.in_a_row >= MOST_IN_A_ROW else None

    def loss_by_budget(self, now_ms: int) -> Loss | None:
        """As `loss`, of a push that came too early or is too large."""
        if self.budget is None:
            return Loss.OFF
        return None if self.budget.measure(now_ms) > 0 else Loss.BUDGET

    def remember(self, instance_id: bytes, client: KeptClient, interval_ms: int, now_ms: int) -> bool:
        """Remember a client; False if there is no room."""
        self.forget_silent(now_ms)
        if instance_id not in self.clients and len(self.clients) >= self.config.cache_size:
            return False
        client.forget_ms = now_ms + max(LEAST_MEMORY_MS, 3 * interval_ms)
        self.clients[instance_id] = client
        self.clients.move_to_end(instance_id)
        return True

    def forget_silent(self, now_ms: int) -> None:
        """Forget the clients that were remembered for long enough, two at most."""
        for instance_id in [each for each, _ in zip(self.clients, range(2), strict=False)]:
            if self.clients[instance_id].forget_ms <= now_ms:
                del self.clients[instance_id]

    def charge(self, instance_id: bytes, size_bytes: int, now_ms: int) -> None:
        """Charge the bytes of a client's push to the budget, if it is stored because of that."""
        client = self.clients.get(instance_id)
        if self.budget is not None and client is not None and client.is_charged:
            self.budget.record(size_bytes, now_ms)

    def is_repeated(self, request: PushTelemetryRequest) -> bool:
        """Whether the last push of the client was this one, and was stored."""
        client = self.clients.get(request.client_instance_id)
        return client is not None and client.fingerprint == fingerprint(request)

    def accepted(self, request: PushTelemetryRequest) -> bool:
        """Whether an accepted push repeats one that was stored. If it does not, its client is forgotten."""
        if request.metrics and self.is_repeated(request):
            self.clients[request.client_instance_id].in_a_row = 0
            return True
        self.clients.pop(request.client_instance_id, None)
        return False

    def not_stored(self, instance_id: bytes) -> None:
        """Let a client send its last push again: it was not stored after all."""
        client = self.clients.get(instance_id)
        if client is not None:
            client.fingerprint = 0


def fingerprint(request: PushTelemetryRequest) -> int:
    """A hash of the payload that a client cannot guess; 0 without a payload."""
    # Copied: a view into the connection's buffer has no hash.
    return hash(bytes(request.metrics or b""))


def blame(failure: BaseException, kafka_policy: bool) -> ErrorCode:
    """The error code for a payload that could not be opened.

    A failure of the host (a worker died, too many payloads wait) must not become INVALID_RECORD, which ends a
    client's telemetry for good. With the client-safe policy the client tries again later.
    """
    if isinstance(failure, TooLarge):
        return ErrorCode.TELEMETRY_TOO_LARGE
    if isinstance(failure, WireError):
        return ErrorCode.INVALID_RECORD
    log.error("payload could not be opened", extra={"problem": repr(failure)})
    return ErrorCode.INVALID_RECORD if kafka_policy else ErrorCode.THROTTLING_QUOTA_EXCEEDED
