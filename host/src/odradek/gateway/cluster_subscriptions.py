"""The subscriptions that apply to the clients of a gateway: those of the upstream cluster and of the file.

The result depends on the two sets alone, so that all gateways of a cluster give a client the same
subscription. A poll that fails changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.metrics.metric import MetricRow, Metrics
from odradek.telemetry.subscriptions import Subscriptions
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError

log = logging.getLogger(__name__)

Wanted = Mapping[str, Mapping[str, str]]
"""Properties by name of the subscription."""
OK, REFUSED, FAILED = "ok", "refused", "failed"
OUTCOMES: Final = (OK, REFUSED, FAILED)
"""The outcomes of a poll."""

SUBSCRIPTIONS: Metrics[ClusterSubscriptions] = Metrics("odradek.gateway")
SUBSCRIPTIONS.gauge("subscriptions", "{subscription}", "Subscriptions in force", "subscriptions.by_name")
SUBSCRIPTIONS.gauge(
    "subscriptions.of.cluster",
    "{subscription}",
    "Subscriptions of the upstream cluster, as last known",
    lambda it: len(it.of_cluster or ()),
)
SUBSCRIPTIONS.gauge(
    "subscriptions.left.out",
    "{subscription}",
    "Subscriptions of the upstream cluster that are not valid here",
    "left_out",
)
SUBSCRIPTIONS.gauge(
    "subscriptions.age",
    "s",
    "Time since the upstream cluster listed its subscriptions",
    lambda it: None if it.good_ms is None else (it.clock.monotonic_ms() - it.good_ms) / 1000,
)
SUBSCRIPTIONS.counter("subscription.polls", "{poll}", "Polls of the upstream cluster", "polls", by="outcome")


@dataclass(slots=True, eq=False)
class ClusterSubscriptions:
    """The newest known subscriptions of the cluster, and their combination with those of the file."""

    source: SubscriptionSource
    subscriptions: Subscriptions
    """Those in force, with their limits."""
    clock: Clock
    of_cluster: Wanted | None = None
    """None while the cluster has not been asked yet, or refuses."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Subscriptions of the cluster that this host does not accept, with the reason, by name."""
    polls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    good_ms: int | None = None
    """When the last poll succeeded; None if none has."""
    refusal: str | None = None
    """The reason why the cluster refuses; None if it does not."""
    failures_log: SampledLog = field(default_factory=lambda: SampledLog(log))

    def combined(self, of_file: Wanted) -> Wanted:
        """Return the subscriptions in force. The file replaces a subscription of the same name."""
        if self.source is SubscriptionSource.FILE or self.of_cluster is None:
            return of_file
        if self.source is SubscriptionSource.CLUSTER:
            return self.of_cluster
        return {**self.of_cluster, **of_file}

    def listed(self, found: Wanted, stored: Wanted) -> None:
        """The cluster has listed its subscriptions.

        Args:
            found: Its subscriptions. Those that this host does not accept are left out.
            stored: The subscriptions in force.
        """
        self.polls[OK] += 1
        self.good_ms = self.clock.monotonic_ms()
        if self.refusal is not None:
            log.info("the cluster lists its subscriptions again", extra={"subscriptions": len(found)})
            self.refusal = None
        before, self.left_out = self.left_out, {}
        self.of_cluster = {
            name: properties
            for name, properties in sorted(found.items())
            if properties and self.accepts(name, properties, stored)
        }
        self.subscriptions.release()
        for name, reason in self.left_out.items():
            if before.get(name) != reason:
                log.warning(
                    "subscription of the cluster is left out: %s", reason, extra={"subscription": name}
                )

    def accepts(self, name: str, properties: Mapping[str, str], stored: Wanted) -> bool:
        """Whether a subscription is valid here, within the limits; note the reason if it is not.

        Java's regular expressions can do more than RE2, which matches in linear time.
        """
        if stored.get(name) == properties:
            return True
        try:
            self.subscriptions.check(name, properties, stored.get(name, {}))
            if name not in stored:
                self.subscriptions.number_limit.reserve()
        except ApiError as error:
            self.left_out[name] = error.message or error.code.name
            return False
        return True

    def refused(self, reason: str) -> None:
        """The cluster does not let the gateway list its subscriptions: those of the file apply alone."""
        self.polls[REFUSED] += 1
        self.of_cluster = None
        self.left_out = {}
        if self.refusal is None:
            log.warning("subscriptions are taken from the file only: %s", reason)
        self.refusal = reason

    def failed(self, reason: str) -> None:
        """The cluster could not be asked: the last known subscriptions stay in force."""
        self.polls[FAILED] += 1
        self.failures_log.write(
            logging.WARNING,
            self.clock.monotonic_ms(),
            "the cluster cannot be asked for its subscriptions, the last known ones stay: %s",
            reason,
        )

    def metric_rows(self) -> Iterator[MetricRow]:
        """The subscriptions by source, and the polls."""
        return SUBSCRIPTIONS.rows(self)
