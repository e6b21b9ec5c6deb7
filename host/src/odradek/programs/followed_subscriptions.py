"""The subscriptions of a host that follows those of a cluster: of a gateway, or of a fleet of hosts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from odradek.client.lease import is_over
from odradek.gateway.cluster_subscriptions import ClusterSubscriptions, Wanted
from odradek.metadata.store import MetadataStore
from odradek.metrics.metric import MetricRow
from odradek.plugin.config import ConfigError
from odradek.programs.file_subscriptions import FileSubscriptions
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError

if TYPE_CHECKING:
    from odradek.client.cluster_watch import Observed

log = logging.getLogger(__name__)

OF_CLUSTER: Final = "subscriptions.of.cluster"
"""The key of the last known subscriptions of the cluster, for a restart while the cluster is down."""


class FollowedSubscriptions:
    """Takes the results of polls.

    Args:
        subscriptions: Those of the cluster, beside the file's.
        file: Puts both in force.
        metadata: Keeps those of the cluster.
        clock: The time.
    """

    def __init__(
        self,
        subscriptions: ClusterSubscriptions,
        file: FileSubscriptions,
        metadata: MetadataStore,
        clock: Clock,
    ) -> None:
        self.subscriptions = subscriptions
        self.file = file
        self.metadata = metadata
        self.clock = clock

    def polled(self, state: Observed) -> None:
        """Take note of the result of a poll; on the host's loop.

        Never raises: a poll must not disturb the host.
        """
        try:
            self.take(state)
        except (ApiError, ConfigError) as error:
            log.error("subscriptions of the cluster cannot be stored", extra={"problem": str(error)})
        except Exception:
            log.exception("result of a poll cannot be used")

    def take(self, state: Observed) -> None:
        """`polled`.

        Raises:
            ApiError: The subscriptions cannot be stored; the next poll tries again.
            ConfigError: With the cluster's subscriptions, those of the file exceed a limit.
        """
        if state.subscriptions is not None:
            now_s = self.clock.now_ms() / 1000
            # The cluster may be Apache Kafka, which does not know that they have ended.
            held = {name: each for name, each in state.subscriptions.items() if not is_over(name, now_s)}
            self.subscriptions.listed(held, self.file.stored())
        elif state.refusal is not None:
            self.subscriptions.refused(state.refusal)
        else:
            if state.failure is not None:
                self.subscriptions.failed(state.failure)
            return
        self.apply(self.subscriptions.of_cluster)

    def apply(self, of_cluster: Wanted | None) -> None:
        """Store and use the subscriptions that are in force now."""
        text, metadata = json.dumps(of_cluster, sort_keys=True), self.metadata
        changed = self.file.apply(self.file.of_file)
        if changed:
            log.info("subscriptions have changed", extra={"subscriptions": changed})
        if metadata.value(OF_CLUSTER) != text:
            metadata.put_value(OF_CLUSTER, text)

    def metric_rows(self) -> Iterator[MetricRow]:
        """The subscriptions by source, and the polls."""
        yield from self.subscriptions.metric_rows()
