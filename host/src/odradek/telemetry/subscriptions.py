"""The current subscriptions, and their combination for one client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.telemetry.client_metrics_configs import ALL_METRICS, DEFAULT_INTERVAL_MS, SubscriptionInfo, parse
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata, InstanceMatch
from odradek.telemetry.subscription_id import copy_capacity, hash_set_order, subscription_checksum


@dataclass(frozen=True, slots=True)
class SubscriptionPlan:
    """The settings of all clients to whom the same subscriptions apply; they share this object."""

    metrics: tuple[str, ...]
    """Prefixes of metric names in the order of the subscription id's text."""
    push_interval_ms: int
    checksum: int
    """The subscription id before the client's own id is folded in."""


@dataclass(slots=True, eq=False)
class Subscriptions:
    """All subscriptions by name. Patterns are compiled when a client is first matched after a change."""

    by_name: dict[str, SubscriptionInfo] = field(default_factory=dict)
    version: int = 0
    """Incremented by each change (subscriptionUpdateVersion)."""
    match: InstanceMatch | None = None
    plans: dict[tuple[str, ...], SubscriptionPlan] = field(default_factory=dict)
    """By the names of the subscriptions that apply."""

    def update(self, name: str, properties: Mapping[str, str]) -> None:
        """Set the complete properties of one subscription; no properties delete it.

        Storing the same properties again is a change too, as in Kafka.

        Raises:
            ApiError: INVALID_REQUEST or INVALID_CONFIG; nothing changed.
        """
        subscription = parse(name, properties)
        if properties:
            self.by_name[name] = subscription
        elif self.by_name.pop(name, None) is None:
            return
        self.version += 1
        self.match = None
        self.plans.clear()

    def plan(self, metadata: ClientMetricsInstanceMetadata) -> SubscriptionPlan:
        """The settings of a client with these attributes."""
        if self.match is None:
            # Sorted, so that two hosts that heard of the subscriptions in different order agree.
            self.match = InstanceMatch(
                {name: self.by_name[name].match_pattern for name in sorted(self.by_name)}
            )
        names = tuple(self.match.matching(metadata))
        plan = self.plans.get(names)
        if plan is None:
            plan = self.plans[names] = self.merged(names)
        return plan

    def merged(self, names: tuple[str, ...]) -> SubscriptionPlan:
        """All metrics of the subscriptions and the shortest of their intervals, the default's included."""
        chosen = [self.by_name[name] for name in names]
        interval_ms = min([DEFAULT_INTERVAL_MS, *(subscription.interval_ms for subscription in chosen)])
        metrics = hash_set_order(
            prefix
            for subscription in chosen
            for prefix in hash_set_order(subscription.metrics, copy_capacity(len(subscription.metrics)))
        )
        if ALL_METRICS in metrics:
            metrics = [ALL_METRICS]
        return SubscriptionPlan(tuple(metrics), interval_ms, subscription_checksum(metrics, interval_ms))
