"""The estimate of a changed subscription, before the host accepts it (``subscription.estimate``).

It reads the pushes of the last intervals from the telemetry topic, in steps between requests, and adds the
clients that the host remembers. Large pushes are opened by a worker process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from odradek.bounds.bounded_regex import RegexBounds
from odradek.delivery.log_cursor import EXPIRED, Chunk, LogCursor
from odradek.delivery.spooled_record import SpooledRecord
from odradek.estimate.budgets import EstimateMode, SubscriptionBudgets
from odradek.estimate.estimate import Estimate, estimate
from odradek.estimate.figures import excesses, sentence
from odradek.estimate.futures import live_clients
from odradek.estimate.pushed_streams import PushedPoints, points_of
from odradek.estimate.recorded_clients import RecordedClients, counts, live_ms, starts
from odradek.telemetry.client_metrics_configs import (
    MATCH,
    SubscriptionInfo,
    check_in_steps,
    check_patterns,
    parse,
)
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.subscriptions import SubscriptionPlans
from odradek.waiting.clock import Clock
from odradek.waiting.deferred import Deferred
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

MAX_PUSHES: Final = 5_000
"""Pushes that one request reads, the newest ones: one second of work between other requests. The series of
clients whose pushes are older are guessed.
"""
MAX_BYTES: Final = 64 << 20
"""Payloads that one request reads."""


@dataclass(frozen=True, slots=True)
class PointsWork:
    """The data points of a large push, for another process."""

    data: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def __call__(self) -> PushedPoints:
        return points_of(self.data)


PointsOffload = Callable[[PointsWork, Callable[[Any], None]], None]


class PushLog(Protocol):
    """The telemetry topic: `TelemetrySpool`."""

    def since(self, timestamp_ms: int) -> Generator[Step, Any, dict[int, int]]:
        """The first offset since a time, by partition."""

    def ends(self) -> dict[int, int]:
        """The offset of the next record, by partition."""

    def read(self, positions: Mapping[int, int]) -> list[Chunk]:
        """The batches from the positions on, a portion of each partition."""


class SubscriptionEstimates:
    """Estimates changes of subscriptions, and refuses those that exceed a budget.

    Args:
        budgets: The limits.
        telemetry: Knows the clients and the subscriptions.
        clock: The time.
        pushes: The telemetry topic; None if the host does not keep pushes: then all series are guessed.
        offload: Opens large pushes.
    """

    def __init__(
        self,
        budgets: SubscriptionBudgets,
        telemetry: ClientMetricsManager,
        clock: Clock,
        pushes: PushLog | None,
        offload: PointsOffload,
    ) -> None:
        self.budgets = budgets
        self.telemetry = telemetry
        self.clock = clock
        self.pushes = pushes
        self.offload = offload

    def refusals(
        self, changes: Mapping[str, Mapping[str, str]]
    ) -> Generator[Step, Any, Mapping[str, ApiError]]:
        """The changes of one request that exceed a budget, by the name of the subscription.

        Args:
            changes: By name: all properties after the change; none if it is deleted. Invalid ones are left
                out, because another check refuses them.
        """
        refused: dict[str, ApiError] = {}
        recorded: RecordedClients | None = None
        bounds = self.telemetry.config.match_bounds
        by_name = self.telemetry.subscriptions.usable()
        for name, properties in changes.items():
            try:
                yield from check_in_steps(properties.get(MATCH, ""), bounds)
                after = changed(by_name, name, properties, bounds)
            except ApiError:
                continue
            if recorded is None:
                recorded = yield from self.recorded(by_name)
            found = yield from self.estimated(recorded, by_name, after)
            if self.refuses(name, found):
                refused[name] = ApiError(
                    ErrorCode.INVALID_CONFIG,
                    f"subscription {name} would bring too many series: {excesses(found)}; name fewer metrics "
                    f"or clients, or raise the budget. Estimate: {sentence(found)}",
                )
            else:
                by_name = after
        return refused

    def refuses(self, name: str, found: Estimate) -> bool:
        """Log an estimate. True if the change is refused."""
        refuses = bool(found.exceeded) and self.budgets.mode is EstimateMode.REFUSE
        level = logging.WARNING if found.exceeded else logging.INFO
        log.log(
            level,
            "subscription exceeds a budget for series"
            if found.exceeded
            else "subscription is within budgets",
            extra={
                "subscription": name,
                "refused": refuses,
                "over_budget": excesses(found),
                "figures": sentence(found),
            },
        )
        return refuses

    def estimated(
        self,
        recorded: RecordedClients,
        before: Mapping[str, SubscriptionInfo],
        after: Mapping[str, SubscriptionInfo],
    ) -> Generator[Step, Any, Estimate]:
        known = [each.metadata for each in self.telemetry.instances() if not each.terminating]
        clients = live_clients(recorded, known, self.clock.now_ms())
        return (
            yield from estimate(
                clients, recorded.reader, SubscriptionPlans(before), SubscriptionPlans(after), self.budgets
            )
        )

    def recorded(
        self, subscriptions: Mapping[str, SubscriptionInfo]
    ) -> Generator[Step, Any, RecordedClients]:
        """The clients of the last intervals. A log that cannot be read leaves them out."""
        clients = RecordedClients()
        longest_ms = max((each.interval_ms for each in subscriptions.values()), default=0)
        if self.pushes is not None:
            try:
                yield from self.read(self.pushes, self.clock.now_ms() - live_ms(longest_ms), clients)
            except ApiError as error:
                log.warning("pushes cannot be read for an estimate", extra={"problem": str(error)})
        if clients.unread:
            log.warning(
                "some pushes cannot be read for an estimate",
                extra={"pushes": clients.unread, "problem": clients.problem},
            )
        return clients

    def read(self, pushes: PushLog, since_ms: int, clients: RecordedClients) -> Generator[Step, Any, None]:
        """Read the pushes since a time, up to the ends of now."""
        begins = yield from pushes.since(since_ms)
        ends = {index: end for index, end in pushes.ends().items() if index in begins}
        cursor = LogCursor(starts(begins, ends, MAX_PUSHES))
        read_bytes = 0
        for index, end in ends.items():
            before = -1
            while before < cursor.expected[index] < end and read_bytes < MAX_BYTES:
                before = cursor.expected[index]
                # One partition at a time: the others are read from their ends.
                for chunk in pushes.read({**pushes.ends(), index: before}):
                    cursor.pass_over(chunk.partition, chunk.start, EXPIRED)
                    read_bytes += len(chunk.data)
                    yield from self.take(chunk, cursor, clients)

    def take(self, chunk: Chunk, cursor: LogCursor, clients: RecordedClients) -> Generator[Step, Any, None]:
        """Add the pushes of a chunk, each as a step. The position moves after each batch."""
        yield None
        for pushes in cursor.opened(chunk):
            for record in pushes:
                is_new = record.original.offset >= cursor.expected[chunk.partition]
                if is_new and record.fault is None and counts(record):
                    yield from self.add(record, clients)

    def add(self, record: SpooledRecord, clients: RecordedClients) -> Generator[Step, Any, None]:
        """Add a push."""
        data = record.payload.data
        if len(data) <= self.telemetry.inline_bytes:
            clients.add(record)
            yield None
            return
        opened = Deferred[PushedPoints]()
        self.offload(PointsWork(data), opened.complete)
        try:
            pushed = yield opened
        except Exception as error:  # noqa: BLE001  a worker that fails costs the estimate one push
            clients.pass_over(error)
        else:
            clients.add_points(record, pushed)


def changed(
    by_name: Mapping[str, SubscriptionInfo], name: str, properties: Mapping[str, str], bounds: RegexBounds
) -> dict[str, SubscriptionInfo]:
    """The subscriptions after a change.

    Raises:
        ApiError: INVALID_REQUEST or INVALID_CONFIG.
    """
    after = {other: each for other, each in by_name.items() if other != name}
    if properties:
        after[name] = parse(name, properties)
        check_patterns(after[name].match_pattern, bounds)
    return after
