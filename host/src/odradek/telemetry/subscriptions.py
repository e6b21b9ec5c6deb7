"""The current subscriptions, and their combination for one client."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from odradek.bounds.bounded_regex import Verdict
from odradek.bounds.sampled_log import SampledLog
from odradek.settings.state_limit import StateLimit
from odradek.telemetry.client_metrics_configs import (
    ALL_METRICS,
    DEFAULT_INTERVAL_MS,
    MATCH,
    SubscriptionInfo,
    judged,
    parse,
    validate,
)
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata, InstanceMatch
from odradek.telemetry.subscription_id import copy_capacity, hash_set_order, subscription_checksum
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

MAX_PLANS: Final = 1_024
"""Plans that are remembered for other clients: client ids can be chosen so that each has its own."""

NO_SUBSCRIPTION: Final = "no subscription: clients are told to push nothing"
"""The commonest reason why nothing arrives."""
CREATE: Final = (
    "odradek client-metrics --bootstrap-server {} --alter --name all --metrics '*' --interval 10000"
)
"""The command that creates a subscription, for the address of a host."""


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """The settings of all clients to whom the same subscriptions apply; they share this object."""

    metrics: tuple[str, ...]
    """Prefixes of metric names in the order of the subscription id's text."""
    push_interval_ms: int
    checksum: int
    """The subscription id before the client's own id is folded in."""


class SubscriptionPlans:
    """The plans of clients under subscriptions that do not change."""

    def __init__(self, by_name: Mapping[str, SubscriptionInfo]) -> None:
        self.by_name = by_name
        # Sorted, so that two hosts that heard of the subscriptions in different order agree.
        self.match = InstanceMatch({name: by_name[name].match_pattern for name in sorted(by_name)})
        self.remembered: dict[tuple[str, ...], SubscriptionPlan] = {}
        """By the names of the subscriptions that apply."""

    def plan(self, metadata: ClientMetricsInstanceMetadata) -> SubscriptionPlan:
        """The settings of a client with these attributes."""
        return self.merged(tuple(self.match.matching(metadata)))

    def merged(self, names: tuple[str, ...]) -> SubscriptionPlan:
        """The settings of a client to whom these subscriptions apply."""
        plan = self.remembered.get(names)
        if plan is None:
            if len(self.remembered) >= MAX_PLANS:
                self.remembered.clear()
            plan = self.remembered[names] = merged_plan([self.by_name[name] for name in names])
        return plan


def merged_plan(chosen: Sequence[SubscriptionInfo]) -> SubscriptionPlan:
    """All metrics of the subscriptions and the shortest of their intervals, the default's included."""
    interval_ms = min([DEFAULT_INTERVAL_MS, *(subscription.interval_ms for subscription in chosen)])
    metrics = hash_set_order(
        prefix
        for subscription in chosen
        for prefix in hash_set_order(subscription.metrics, copy_capacity(len(subscription.metrics)))
    )
    if ALL_METRICS in metrics:
        metrics = [ALL_METRICS]
    return SubscriptionPlan(tuple(metrics), interval_ms, subscription_checksum(metrics, interval_ms))


@dataclass(slots=True, eq=False)
class Subscriptions:
    """All subscriptions by name. Patterns are compiled when a client is first matched after a change."""

    config: TelemetryConfig
    clock: Clock
    by_name: dict[str, SubscriptionInfo] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    """Steps of the compiled patterns of each subscription, by name."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The reason for each subscription that applies to no client because a stored pattern cannot be used."""
    total_steps: int = 0
    total_metrics: int = 0
    """Prefixes of metric names of all subscriptions."""
    number_limit: StateLimit = field(init=False)
    steps_limit: StateLimit = field(init=False)
    metrics_limit: StateLimit = field(init=False)
    version: int = 0
    """Incremented by each change (subscriptionUpdateVersion)."""
    plans: SubscriptionPlans | None = None
    """Of the current subscriptions; made when a client is first matched after a change."""
    suspended: bool = False
    """No subscription applies to any client."""
    removals_log: SampledLog = field(default_factory=lambda: SampledLog(log))

    def __post_init__(self) -> None:
        self.number_limit = StateLimit(
            "subscriptions",
            "telemetry.subscriptions.max",
            self.config.max_subscriptions,
            lambda: len(self.by_name),
            self.clock,
        )
        self.steps_limit = StateLimit(
            "match steps",
            "telemetry.match.max.steps",
            self.config.match_max_steps,
            lambda: self.total_steps,
            self.clock,
        )
        self.metrics_limit = StateLimit(
            "metric prefixes",
            "telemetry.metrics.max",
            self.config.max_metrics,
            lambda: self.total_metrics,
            self.clock,
        )

    @property
    def limits(self) -> list[StateLimit]:
        return [self.number_limit, self.steps_limit, self.metrics_limit]

    def check(self, name: str, properties: Mapping[str, str], stored: Mapping[str, str]) -> None:
        """Check a change that a client asks for, within the limits; see `validate`.

        Raises:
            ApiError: INVALID_REQUEST, INVALID_CONFIG or POLICY_VIOLATION.
        """
        checked = validate(name, properties, stored, self.config.match_bounds)
        if properties.get(MATCH) != stored.get(MATCH):
            steps = sum(each.steps for each in self.verdicts(checked).values())
            self.steps_limit.reserve(steps - self.steps.get(name, 0))
        before = self.by_name.get(name)
        self.metrics_limit.reserve(len(checked.metrics) - (len(before.metrics) if before else 0))

    def release(self) -> None:
        """Forget the reservations of `check`: its changes were applied or given up."""
        for limit in self.limits:
            limit.reserved = 0

    def update(self, name: str, properties: Mapping[str, str]) -> None:
        """Set the complete properties of one subscription; no properties delete it.

        Storing the same properties again is a change too, as in Kafka.

        Raises:
            ApiError: INVALID_REQUEST or INVALID_CONFIG; nothing changed.
        """
        subscription = parse(name, properties)
        before = self.by_name.pop(name, None)
        if properties:
            self.by_name[name] = subscription
            self.total_metrics += len(subscription.metrics)
        elif before is None:
            return
        elif not self.by_name:
            now_ms = self.clock.monotonic_ms()
            self.removals_log.write(logging.WARNING, now_ms, NO_SUBSCRIPTION, removed=name)
        if before is not None:
            self.total_metrics -= len(before.metrics)
        self.total_steps -= self.steps.pop(name, 0)
        skipped = self.skipped.pop(name, None)
        if properties:
            self.take_patterns(subscription, skipped)
        self.version += 1
        self.plans = None

    def verdicts(self, subscription: SubscriptionInfo) -> dict[str, Verdict]:
        """The results of checking the patterns of a subscription, by selector."""
        bounds = self.config.match_bounds
        return {key: judged(pattern, bounds) for key, pattern in subscription.match_pattern.items()}

    def take_patterns(self, subscription: SubscriptionInfo, before: str | None) -> None:
        """Count the steps of the patterns, or skip the subscription if one of them cannot be matched in time.

        Args:
            subscription: The subscription.
            before: The reason why it was skipped before this change.
        """
        name, verdicts = subscription.name, self.verdicts(subscription)
        self.steps[name] = sum(each.steps for each in verdicts.values())
        self.total_steps += self.steps[name]
        reasons = [f"{key}: {each.problem}" for key, each in verdicts.items() if each.problem is not None]
        if not reasons:
            return
        self.skipped[name] = "; ".join(reasons)
        if self.skipped[name] != before:
            log.warning(
                "subscription is skipped, change its match: %s",
                self.skipped[name],
                extra={"subscription": name, "setting": self.steps_limit.setting},
            )

    def usable(self) -> dict[str, SubscriptionInfo]:
        """The subscriptions that are not skipped, by name."""
        return {name: each for name, each in self.by_name.items() if name not in self.skipped}

    def suspend(self, suspended: bool) -> None:
        """Let no subscription apply to any client, or end that. The subscriptions themselves stay."""
        if suspended is not self.suspended:
            self.suspended = suspended
            self.version += 1

    def plan(self, metadata: ClientMetricsInstanceMetadata) -> SubscriptionPlan:
        """The settings of a client with these attributes."""
        if self.plans is None:
            self.plans = SubscriptionPlans(self.usable())
        return self.plans.merged(()) if self.suspended else self.plans.plan(metadata)
