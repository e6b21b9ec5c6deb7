"""The telemetry of a gateway: the host's own, with subscriptions and labels of the upstream cluster."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from odradek.gateway.cluster_subscriptions import ClusterSubscriptions, Wanted
from odradek.gateway.dropping_sink import DroppingSink
from odradek.gateway.gateway_labels import GatewayLabels
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.gateway.telemetry_settings import GatewayTelemetrySettings, SpoolFull
from odradek.plugin.config import ConfigError
from odradek.server.observation import observation_of
from odradek.telemetry.client_metrics_stats import MetricRow
from odradek.wire.api_error import ApiError

if TYPE_CHECKING:
    from odradek.server.host import Host

log = logging.getLogger(__name__)

OF_CLUSTER: Final = "subscriptions.of.cluster"
"""The key of the last known subscriptions of the cluster, for a restart while the cluster is down."""
ENRICHER: Final = "gateway"
"""The name of the gateway's labels among the plugins."""


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


class GatewayTelemetry:
    """Connects the telemetry of a host to a gateway. Make it after the host and before the host starts.

    Args:
        host: The host, with its dispatcher, its spool and its plugins.
        settings: The settings of the gateway's telemetry.
        learned: Called with id, host and port of each broker of the cluster after each poll.

    Raises:
        ApiError: The metadata file cannot be read.
    """

    def __init__(
        self, host: Host, settings: GatewayTelemetrySettings, learned: Callable[[int, str, int], None]
    ) -> None:
        self.host = host
        self.learned = learned
        self.answers = TelemetryAnswers(host.dispatcher, host.telemetry)
        self.labels = GatewayLabels(settings.name or socket.gethostname())
        host.enrichers.register(ENRICHER, self.labels)
        known = host.metadata.value(OF_CLUSTER) if settings.reads_cluster else None
        self.subscriptions = ClusterSubscriptions(
            settings.subscriptions,
            host.telemetry.subscriptions,
            host.clock,
            None if known is None else json.loads(known),
        )
        host.file_subscriptions.combined = self.subscriptions.combined
        self.observation = observation_of(host, settings.observation, self.labels.name)
        """None if no client is observed."""
        host.meters.append(self.metric_rows)
        if settings.spool_full is SpoolFull.DROP and host.broker.sink is not None:
            dropping = host.broker.sink = DroppingSink(host.broker.sink)
            host.meters.append(dropping.metric_rows)

    def polled(self, state: ClusterState) -> None:
        """Take note of the result of a poll; on the host's loop.

        Never raises: telemetry must not disturb what passes through the gateway.
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
        for node in state.nodes:
            self.learned(*node)
        if state.cluster_id is not None and state.cluster_id != self.labels.cluster_id:
            self.labels.cluster_id = state.cluster_id
            for instance in self.host.telemetry.instances():
                instance.drop_labels()
        if state.subscriptions is not None:
            self.subscriptions.listed(state.subscriptions, self.host.file_subscriptions.stored())
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

    def start(self) -> None:
        """Begin to write records of observed clients; after the start of the host."""
        if self.observation is not None:
            self.observation.start()

    def stop(self) -> None:
        """Write the last records of observed clients; before the stop of the host."""
        if self.observation is not None:
            self.observation.stop()

    def silence(self, silent: bool) -> None:
        """The kill switch: tell all clients to push nothing, or end that."""
        self.answers.silence(silent)

    def metric_rows(self) -> Iterator[MetricRow]:
        """The metrics of the gateway's telemetry."""
        yield from self.answers.metric_rows()
        yield from self.subscriptions.metric_rows()
