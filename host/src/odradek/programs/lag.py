"""The lag of a host's groups, written into the telemetry topic."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.broker import Broker
from odradek.lag.lag_settings import Measured
from odradek.meters.metrics import source_rows
from odradek.metrics.metric import MetricRow
from odradek.plugin.protocols import LAG_SOURCE
from odradek.programs.config import HostConfig
from odradek.programs.pushes import Pushes
from odradek.programs.spine import Part
from odradek.telemetry.record_source import RecordSource


def lag_part(config: HostConfig, pushes: Pushes, broker: Broker) -> list[Part]:
    """The part that measures lag; none if it is off, or if nothing takes its records."""
    if config.host_lag.measured is Measured.NONE or not pushes.takes_records:
        return []
    from odradek.broker.host_positions import HostPositions  # hosts without it start faster
    from odradek.broker.lag_rounds import LagRounds, matcher

    source = RecordSource(LAG_SOURCE, pushes.manager, pushes.sources.keep)
    chosen = matcher(config.lag.groups), matcher(config.lag.topics)
    rounds = LagRounds(
        HostPositions(broker.groups, broker.topics, broker.clock, *chosen),
        config.lag,
        config.host_lag.interval_ms,
        cluster_id=broker.cluster_id,
        node_id=broker.settings.node_id,
        source=source,
        clock=broker.clock,
        timer=broker.timer,
        steps=broker.steps,
    )

    def rows() -> Iterator[MetricRow]:
        yield from rounds.metric_rows()
        yield from source_rows(source)

    return [Part(rounds.start, rounds.stop, rows)]
