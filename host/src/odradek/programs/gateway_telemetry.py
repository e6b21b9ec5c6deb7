"""The telemetry of a gateway: the host's own, with subscriptions and labels of the upstream cluster."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from odradek.gateway.dropping_sink import DroppingSink
from odradek.gateway.gateway_labels import GatewayLabels
from odradek.gateway.telemetry_answers import TelemetryAnswers
from odradek.gateway.telemetry_settings import GatewayTelemetrySettings, SpoolFull
from odradek.metrics.metric import MetricRow
from odradek.programs.followed_subscriptions import ClusterState, FollowedSubscriptions
from odradek.programs.observation import observation_of

if TYPE_CHECKING:
    from odradek.programs.host import Host

log = logging.getLogger(__name__)

ENRICHER: Final = "gateway"
"""The name of the gateway's labels among the plugins."""


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
        self.followed = FollowedSubscriptions(host, settings.subscriptions)
        self.subscriptions = self.followed.subscriptions
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
            self.learn(state)
        except Exception:
            log.exception("result of a poll cannot be used")
        self.followed.polled(state)

    def learn(self, state: ClusterState) -> None:
        """Take note of the brokers and the id of the cluster."""
        for node in state.nodes:
            self.learned(*node)
        if state.cluster_id is not None and state.cluster_id != self.labels.cluster_id:
            self.labels.cluster_id = state.cluster_id
            for instance in self.host.telemetry.instances():
                instance.drop_labels()

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
