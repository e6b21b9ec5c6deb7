"""The lag of a host's groups and clients, written into the telemetry topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from odradek.broker.broker import Broker
from odradek.lag.lag_settings import Measured
from odradek.meters.metrics import source_rows
from odradek.metrics.metric import MetricRow, Metrics
from odradek.plugin.protocols import LAG_SOURCE
from odradek.programs.config import HostConfig
from odradek.programs.pushes import Pushes
from odradek.programs.spine import Part
from odradek.telemetry.record_source import RecordSource


def lag_parts(config: HostConfig, pushes: Pushes, broker: Broker, origin: str) -> list[Part]:
    """The parts that measure lag; none if it is off, or if nothing takes its records.

    Args:
        config: The configuration.
        pushes: Take the records.
        broker: Has groups and logs.
        origin: The name of this host.
    """
    settings = config.host_lag.measured
    if settings is Measured.NONE or not pushes.takes_records:
        return []
    from odradek.broker.fetch.fetch_reads import FetchReads  # hosts without it start faster
    from odradek.broker.host_positions import HostPositions
    from odradek.broker.host_readers import HostReaders
    from odradek.broker.lag_rounds import ACTIVE, CLIENT_ROUNDS, ROUNDS, LagRounds, matcher

    source = RecordSource(LAG_SOURCE, pushes.manager, pushes.sources.keep)
    rooms = broker.groups, broker.topics, broker.clock
    chosen = matcher(config.lag.groups), matcher(config.lag.topics)
    measured: list[tuple[Any, Metrics[LagRounds]]] = []
    if settings.has_groups:
        measured.append((HostPositions(*rooms, *chosen, broker.shares.deliveries), ROUNDS))
    if settings.has_clients:
        broker.fetch_reads = FetchReads()
        measured.append((HostReaders(broker.fetch_reads, *rooms, *chosen, origin), CLIENT_ROUNDS))
    rounds = [
        LagRounds(
            positions,
            config.lag,
            config.host_lag.interval_ms,
            cluster_id=broker.cluster_id,
            node_id=broker.settings.node_id,
            source=source,
            clock=broker.clock,
            timer=broker.timer,
            steps=broker.steps,
            metrics=metrics,
        )
        for positions, metrics in measured
    ]

    def rows() -> Iterator[MetricRow]:
        yield ACTIVE.row(settings.has_groups)
        yield from source_rows(source)

    return [*[Part(each.start, each.stop, each.metric_rows) for each in rounds], Part(metric_rows=rows)]
