"""The subscriptions of a host that follows those of a cluster: of a gateway, or of a fleet of hosts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from odradek.client.lease import is_over
from odradek.gateway.cluster_subscriptions import ClusterSubscriptions, Wanted
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.metrics.metric import MetricRow
from odradek.plugin.config import ConfigError
from odradek.wire.api_error import ApiError

if TYPE_CHECKING:
    from odradek.programs.host import Host

log = logging.getLogger(__name__)

OF_CLUSTER: Final = "subscriptions.of.cluster"
"""The key of the last known subscriptions of the cluster, for a restart while the cluster is down."""


class ClusterState(Protocol):
    """The result of one poll of the cluster; see `odradek.client.cluster_watch.Observed`."""

    @property
    def cluster_id(self) -> str | None: ...

    @property
    def nodes(self) -> Sequence[tuple[int, str, int]]: ...

    @property
    def subscriptions(self) -> Mapping[str, Mapping[str, str]] | None: ...

    @property
    def refusal(self) -> str | None: ...

    @property
    def failure(self) -> str | None: ...


class FollowedSubscriptions:
    """Takes the results of polls. Make it after the host and before the host starts.

    Args:
        host: The host.
        source: Which subscriptions are in force.

    Raises:
        ApiError: The metadata file cannot be read.
    """

    def __init__(self, host: Host, source: SubscriptionSource) -> None:
        self.host = host
        known = None if source is SubscriptionSource.FILE else host.metadata.value(OF_CLUSTER)
        self.subscriptions = ClusterSubscriptions(
            source, host.telemetry.subscriptions, host.clock, None if known is None else json.loads(known)
        )
        host.file_subscriptions.combined = self.subscriptions.combined

    def alone(self, cluster: str) -> None:
        """Refuse changes over the network, and end those of before: all hosts have the same subscriptions.

        Args:
            cluster: The cluster, for the refusal.
        """
        self.host.broker.followed_cluster = cluster
        self.host.file_subscriptions.is_alone = True
        self.host.meters.append(self.metric_rows)

    def polled(self, state: ClusterState) -> None:
        """Take note of the result of a poll; on the host's loop.

        Never raises: a poll must not disturb the host.
        """
        try:
            self.take(state)
        except (ApiError, ConfigError) as error:
            log.error("subscriptions of the cluster cannot be stored", extra={"problem": str(error)})
        except Exception:
            log.exception("result of a poll cannot be used")

    def take(self, state: ClusterState) -> None:
        """`polled`.

        Raises:
            ApiError: The subscriptions cannot be stored; the next poll tries again.
            ConfigError: With the cluster's subscriptions, those of the file exceed a limit.
        """
        if state.subscriptions is not None:
            now_s = self.host.clock.now_ms() / 1000
            # The cluster may be Apache Kafka, which does not know that they have ended.
            held = {name: each for name, each in state.subscriptions.items() if not is_over(name, now_s)}
            self.subscriptions.listed(held, self.host.file_subscriptions.stored())
        elif state.refusal is not None:
            self.subscriptions.refused(state.refusal)
        else:
            if state.failure is not None:
                self.subscriptions.failed(state.failure)
            return
        self.apply(self.subscriptions.of_cluster)

    def apply(self, of_cluster: Wanted | None) -> None:
        """Store and use the subscriptions that are in force now."""
        text, metadata = json.dumps(of_cluster, sort_keys=True), self.host.metadata
        changed = self.host.file_subscriptions.apply(self.host.config.subscriptions)
        if changed:
            log.info("subscriptions have changed", extra={"subscriptions": changed})
        if metadata.value(OF_CLUSTER) != text:
            metadata.put_value(OF_CLUSTER, text)

    def metric_rows(self) -> Iterator[MetricRow]:
        """The subscriptions by source, and the polls."""
        yield from self.subscriptions.metric_rows()
