"""Clients whose pushes are too large: each is asked for fewer metrics until its pushes fit.

A Java client ignores ``TelemetryMaxBytes`` and goes on sending as many metrics after each TELEMETRY_TOO_LARGE
(KAFKA-21077). Only another subscription ends that. The narrower subscriptions follow from the subscription
alone, so all hosts compute the same ids. A client that comes from another host, or comes back after a
restart, is recognized by its id and keeps its subscription.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache, partial
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.metrics.metric import MetricRow, declare
from odradek.telemetry.client_metrics_configs import ALL_METRICS
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.subscription_id import hash_set_order, subscription_checksum, subscription_id
from odradek.telemetry.subscriptions import SubscriptionPlan
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

NARROWED: Final = declare(
    "gauge",
    "odradek.push.narrowed",
    "{instance}",
    "Clients that are asked for fewer metrics because their pushes were too large: 1 for each",
    "client_instance_id",
    "metrics",
)
REMEMBERED_PLANS: Final = 256
"""Plans whose narrower plans are remembered."""
OF_CLIENTS: Final = (
    "org.apache.kafka.producer.connection.creation.",
    "org.apache.kafka.producer.produce.throttle.time.",
    "org.apache.kafka.producer.record.queue.time.",
    "org.apache.kafka.consumer.connection.creation.",
    "org.apache.kafka.consumer.poll.idle.ratio.",
    "org.apache.kafka.consumer.coordinator.commit.latency.",
    "org.apache.kafka.consumer.coordinator.assigned.partitions",
    "org.apache.kafka.consumer.coordinator.rebalance.latency.",
    "org.apache.kafka.consumer.fetch.manager.fetch.latency.",
)
"""The standard metrics of KIP-714 that a client has once."""
OF_NODES: Final = (
    "org.apache.kafka.producer.node.request.latency.",
    "org.apache.kafka.consumer.node.request.latency.",
)
"""Those that a client has for each broker."""
STRIKE_INTERVALS: Final = 3
"""A client is narrowed after two pushes that are too large within so many push intervals. A Java client needs
two and a half: it waits one, asks for its subscription, and pushes up to one and a half later.
"""
MAX_WAIT_MS: Final = 86_400_000
LINES: Final = 10
"""Log lines in a minute."""


class Narrowness(StrEnum):
    """The metrics that a narrowed client is still asked for, of those in its subscription."""

    STANDARD = "standard"
    """The standard metrics of KIP-714."""
    STANDARD_OF_CLIENT = "standard-without-nodes"
    """The standard metrics without those for each broker."""
    NOTHING = "nothing"


KEPT: Final = {
    Narrowness.STANDARD: OF_CLIENTS + OF_NODES,
    Narrowness.STANDARD_OF_CLIENT: OF_CLIENTS,
    Narrowness.NOTHING: (),
}


@dataclass(slots=True, eq=False)
class NarrowedClient:
    """A client instance whose pushes were too large."""

    plan: SubscriptionPlan
    """Its subscription."""
    wait_ms: int
    """How long its pushes must fit before it is asked for more."""
    level: int = 0
    """The number of steps of `narrower_plans` that were taken."""
    is_widening: bool = False
    """Its last change was to more metrics."""
    task: TimerTask | None = None


@dataclass(slots=True, eq=False)
class NarrowedClients:
    """All clients whose pushes are or were too large, by instance id; the one refused longest ago first."""

    config: TelemetryConfig
    clock: Clock
    timer: Timer
    cached: OrderedDict[bytes, ClientMetricsInstance]
    """The instances that the host remembers."""
    entries: OrderedDict[bytes, NarrowedClient] = field(default_factory=OrderedDict)
    is_enabled: bool = field(init=False)
    narrowings_log: SampledLog = field(default_factory=lambda: SampledLog(log, LINES))
    widenings_log: SampledLog = field(default_factory=lambda: SampledLog(log, LINES))

    def __post_init__(self) -> None:
        self.is_enabled = self.config.narrow_too_large and self.config.error_policy is not ErrorPolicy.KAFKA

    def plan(self, client_instance_id: bytes, plan: SubscriptionPlan) -> SubscriptionPlan:
        """The plan of a client, narrowed if its pushes were too large. A changed subscription ends that."""
        entry = self.entries.get(client_instance_id)
        if entry is None:
            return plan
        if entry.plan.checksum != plan.checksum:
            self.remove(client_instance_id)
            return plan
        return self.current(entry)

    @staticmethod
    def current(entry: NarrowedClient) -> SubscriptionPlan:
        return narrower_plans(entry.plan)[entry.level - 1][1] if entry.level else entry.plan

    def too_large(self, instance: ClientMetricsInstance, push_bytes: int, now_ms: int) -> None:
        """Take note of a push that was refused because of its size. The second one narrows the client.

        Args:
            instance: The client.
            push_bytes: The size of the push as received.
            now_ms: Monotonic time.
        """
        if not self.is_enabled:
            return
        client_instance_id = instance.client_instance_id
        entry = self.entries.get(client_instance_id)
        if entry is None:
            entry = self.add(client_instance_id, instance.plan)
            self.schedule(client_instance_id, entry, STRIKE_INTERVALS * instance.push_interval_ms)
            return
        self.entries.move_to_end(client_instance_id)
        steps = narrower_plans(entry.plan)
        if entry.level < len(steps):
            entry.level += 1
            entry.is_widening = False
            self.apply(client_instance_id, entry)
            self.narrowings_log.write(
                logging.WARNING,
                now_ms,
                "pushes of a client are too large, it is asked for fewer metrics",
                client_instance_id=uuid_text(client_instance_id),
                client_id=instance.metadata.client_id,
                push_bytes=push_bytes,
                metrics=steps[entry.level - 1][0].value,
            )
        self.schedule(client_instance_id, entry, entry.wait_ms)

    def adopts(self, instance: ClientMetricsInstance, pushed_id: int) -> bool:
        """Whether a subscription id that is not the client's belongs to a narrower subscription that another
        host gave to the client. Then it is the client's from now on.
        """
        if not self.is_enabled:
            return False
        client_instance_id = instance.client_instance_id
        entry = self.entries.get(client_instance_id)
        if entry is not None and entry.is_widening:
            return False
        plan = instance.plan if entry is None else entry.plan
        for level, (_, narrower) in enumerate(narrower_plans(plan), 1):
            if subscription_id(narrower.checksum, client_instance_id) == pushed_id and level > (
                entry.level if entry else 0
            ):
                entry = entry or self.add(client_instance_id, plan)
                entry.level = level
                self.apply(client_instance_id, entry)
                self.schedule(client_instance_id, entry, entry.wait_ms)
                return True
        return False

    def add(self, client_instance_id: bytes, plan: SubscriptionPlan) -> NarrowedClient:
        """A new entry. Beyond as many as there are instances, the oldest one is forgotten."""
        entry = self.entries[client_instance_id] = NarrowedClient(plan, self.config.widen_after_ms)
        if len(self.entries) > self.config.cache_size:
            oldest = next(iter(self.entries))
            self.entries[oldest].level = 0
            self.apply(oldest, self.entries[oldest])
            self.remove(oldest)
        return entry

    def apply(self, client_instance_id: bytes, entry: NarrowedClient) -> None:
        """Tell the instance, if the host remembers it. Its next push has the old id, and is refused: the
        client asks for its subscription at once.
        """
        instance = self.cached.get(client_instance_id)
        if instance is not None:
            instance.plan = self.current(entry)
            instance.subscription_id = subscription_id(instance.plan.checksum, client_instance_id)

    def schedule(self, client_instance_id: bytes, entry: NarrowedClient, wait_ms: int) -> None:
        """Look at the entry again after a time in which no push was too large."""
        if entry.task is not None:
            entry.task.cancel()
        deadline_ms = self.clock.monotonic_ms() + wait_ms
        entry.task = self.timer.schedule(deadline_ms, partial(self.has_fitted, client_instance_id, entry))

    def has_fitted(self, client_instance_id: bytes, entry: NarrowedClient) -> None:
        """Ask a client for more metrics, a step at a time. The next attempt comes after twice the time."""
        entry.task = None
        if not entry.level or client_instance_id not in self.cached:
            self.remove(client_instance_id)
            return
        entry.level -= 1
        entry.is_widening = True
        entry.wait_ms = min(2 * entry.wait_ms, max(MAX_WAIT_MS, entry.wait_ms))
        self.apply(client_instance_id, entry)
        self.schedule(client_instance_id, entry, entry.wait_ms)
        self.widenings_log.write(
            logging.INFO,
            self.clock.monotonic_ms(),
            "pushes of a client have fitted, it is asked for more metrics",
            client_instance_id=uuid_text(client_instance_id),
            metrics=narrower_plans(entry.plan)[entry.level - 1][0].value if entry.level else "all",
        )

    def remove(self, client_instance_id: bytes) -> None:
        """Forget an entry."""
        entry = self.entries.pop(client_instance_id, None)
        if entry is not None and entry.task is not None:
            entry.task.cancel()

    def rows(self) -> Iterator[MetricRow]:
        """One row for each narrowed client."""
        for client_instance_id, entry in list(self.entries.items()):  # copied: rows are read in steps
            if entry.level:
                asked = narrower_plans(entry.plan)[entry.level - 1][0].value
                yield NARROWED.row(1, client_instance_id=uuid_text(client_instance_id), metrics=asked)

    def close(self) -> None:
        """Forget everything and leave no timer behind."""
        for client_instance_id in list(self.entries):
            self.remove(client_instance_id)


@lru_cache(maxsize=REMEMBERED_PLANS)
def narrower_plans(plan: SubscriptionPlan) -> Sequence[tuple[Narrowness, SubscriptionPlan]]:
    """The narrower plans for clients of a plan, in the order in which they are tried.

    Each asks for fewer metrics than the one before it, at the same interval; the last one asks for nothing.
    They are remembered: when subscriptions change, the next push of every client has an id that is looked for
    in them, and Java's order of the metrics takes 0.1 ms.
    """
    found: list[tuple[Narrowness, SubscriptionPlan]] = []
    before = set(plan.metrics)
    for narrowness, kept in KEPT.items():
        metrics = hash_set_order(common_prefixes(plan.metrics, kept))
        if set(metrics) != before and (metrics or narrowness is Narrowness.NOTHING):
            interval_ms = plan.push_interval_ms
            checksum = subscription_checksum(metrics, interval_ms)
            found.append((narrowness, SubscriptionPlan(tuple(metrics), interval_ms, checksum)))
            before = set(metrics)
    return tuple(found)


def common_prefixes(metrics: Sequence[str], kept: Sequence[str]) -> list[str]:
    """The prefixes of the names that begin with a prefix of both lists."""
    if ALL_METRICS in metrics:
        return list(kept)
    pairs = ((own, other) for own in metrics for other in kept)
    return list(dict.fromkeys(max(pair, key=len) for pair in pairs if meet(*pair)))


def meet(one: str, other: str) -> bool:
    """Whether a name may begin with both prefixes."""
    return one.startswith(other) or other.startswith(one)
