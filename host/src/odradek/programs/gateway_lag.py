"""The lag of the groups of the cluster behind a gateway, written into the telemetry topic.

All gateways of a cluster join a group; its leader reads the cluster. The connections are the gateway's own,
straight to the brokers, and requests wait on a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from odradek.lag.readers import Reader, Reading
from odradek.meters.metrics import source_rows
from odradek.metrics.metric import MetricRow
from odradek.plugin.protocols import LAG_SOURCE
from odradek.programs.config import HostConfig
from odradek.programs.pushes import Pushes
from odradek.programs.spine import Part, Spine
from odradek.telemetry.record_source import RecordSource
from odradek.waiting.step_runner import StepRunner

if TYPE_CHECKING:
    from odradek.broker.lag_rounds import LagRounds
    from odradek.client.admin import AdminClient
    from odradek.client.asked_brokers import AskedBrokers
    from odradek.client.group_leadership import GroupLeadership

LOOK_MS: Final = 1_000
"""Time between two looks at who leads."""
NO_NODE: Final = -1
GROUP: Final = "odradek.lag."
"""Begins the name of the group; the cluster's id follows."""
PROTOCOL: Final = "odradek-lag"


def gateway_lag_parts(
    config: HostConfig,
    spine: Spine,
    pushes: Pushes,
    connect: Callable[[], AdminClient] | None,
    readings: Callable[[], Iterator[tuple[Reader, Reading]]],
    *,
    is_first: bool,
) -> list[Part]:
    """The parts that measure lag; none if it is off, or if nothing takes its records.

    Args:
        config: The configuration.
        spine: Has the time and the threads.
        pushes: Take the records.
        connect: Makes a client of the cluster; None to measure nothing.
        readings: What each connection of this process reads.
        is_first: Whether the lag of groups may be measured here: of several workers, in the first one.
    """
    settings, parts = config.gateway_lag, list[Part]()
    if connect is None or not pushes.takes_records:
        return []
    source = RecordSource(LAG_SOURCE, pushes.manager, pushes.sources.keep)
    if settings.measured.has_groups and is_first:
        from odradek.client.group_leadership import GroupLeadership  # gateways without it start faster

        leadership = GroupLeadership(
            connect, lambda cluster_id: settings.group or GROUP + cluster_id, PROTOCOL, alone=settings.alone
        )
        groups = GatewayLag(config, spine, source, connect, leadership)
        parts.append(
            Part(groups.start, groups.stop, groups.metric_rows, waits_for=lambda: "the group of gateways")
        )
    if settings.measured.has_clients:
        from odradek.programs.client_lag import ClientLag

        clients = ClientLag(config, spine, source, connect, readings)
        parts.append(Part(clients.start, clients.stop, clients.metric_rows))
    return [*parts, Part(metric_rows=lambda: source_rows(source))] if parts else []


class GatewayLag:
    """Measures while this gateway leads.

    Args:
        config: The configuration.
        spine: Has the time and the thread.
        source: Takes the records.
        connect: Makes a client of the cluster.
        leadership: Of the gateways.
    """

    def __init__(
        self,
        config: HostConfig,
        spine: Spine,
        source: RecordSource,
        connect: Callable[[], AdminClient],
        leadership: GroupLeadership,
    ) -> None:
        self.config = config
        self.clock, self.timer = spine.clock, spine.timer
        self.connect = connect
        self.leadership = leadership
        self.source = source
        self.steps = StepRunner(spine.timer, spine.clock, spine.new_threads().offload)
        self.brokers: AskedBrokers | None = None
        self.rounds: LagRounds | None = None
        """None while another gateway leads."""
        self.stopped = False

    def start(self) -> None:
        """Join the group, and measure as soon as this gateway leads it."""
        self.leadership.start()
        self.look()

    def look(self) -> None:
        """Begin to measure, or end it."""
        if self.stopped:
            return
        if self.leadership.leads and self.rounds is None:
            self.begin()
        elif self.rounds is not None and not self.leadership.leads:
            self.end(self.rounds)
        self.timer.schedule(self.clock.monotonic_ms() + LOOK_MS, self.look)

    def begin(self) -> None:
        """Measure from now on."""
        from odradek.broker.lag_rounds import LagRounds, matcher
        from odradek.client.asked_brokers import AskedBrokers
        from odradek.client.cluster_positions import ClusterPositions

        lag, settings = self.config.lag, self.config.gateway_lag
        self.brokers = AskedBrokers(self.connect, self.clock)
        positions = ClusterPositions(
            self.brokers, self.clock, matcher(lag.groups), matcher(lag.topics), reads=settings.reads
        )
        self.rounds = rounds = LagRounds(
            positions,
            lag,
            settings.interval_ms,
            cluster_id=self.leadership.cluster_id,
            node_id=NO_NODE,
            source=self.source,
            clock=self.clock,
            timer=self.timer,
            steps=self.steps,
            leads=lambda: self.rounds is rounds and self.leadership.leads,
        )
        rounds.start(at_once=True)

    def end(self, rounds: LagRounds) -> None:
        """Leave the series to another gateway."""
        self.rounds = None
        rounds.resign()
        self.close_connections()

    def close_connections(self) -> None:
        brokers, self.brokers = self.brokers, None
        if brokers is not None:
            brokers.interrupt()
            self.steps.offload(brokers.close, lambda _outcome: None)

    async def stop(self) -> None:
        """Write nothing any more, and leave the group, so that another gateway leads at once."""
        self.stopped = True
        if self.rounds is not None:
            self.rounds.stop()
        self.steps.stop()
        self.close_connections()
        await asyncio.to_thread(self.leadership.stop)

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the rounds."""
        from odradek.broker.lag_rounds import ACTIVE

        yield ACTIVE.row(self.rounds is not None)
        if self.rounds is not None:
            yield from self.rounds.metric_rows()
