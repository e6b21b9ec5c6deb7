"""The lag of the clients that read through a gateway, written into the telemetry topic.

Each process of a gateway measures its own clients. The connections are the gateway's own, straight to the
brokers, and requests wait on a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from odradek.broker.lag_rounds import CLIENT_ROUNDS, LagRounds, matcher
from odradek.client.admin import AdminClient
from odradek.client.asked_brokers import AskedBrokers
from odradek.client.reader_positions import ReaderPositions
from odradek.lag.readers import Reader, Reading
from odradek.metrics.metric import MetricRow
from odradek.programs.config import HostConfig
from odradek.programs.spine import Spine
from odradek.telemetry.record_source import RecordSource
from odradek.waiting.step_runner import StepRunner

LOOK_MS: Final = 1_000
NO_NODE: Final = -1


class ClientLag:
    """Measures as soon as the id of the cluster is known.

    Args:
        config: The configuration.
        spine: Has the time and the thread.
        source: Takes the records.
        connect: Makes a client of the cluster.
        readings: What each connection reads.
    """

    def __init__(
        self,
        config: HostConfig,
        spine: Spine,
        source: RecordSource,
        connect: Callable[[], AdminClient],
        readings: Callable[[], Iterator[tuple[Reader, Reading]]],
    ) -> None:
        self.config = config
        self.source = source
        self.cluster, self.clock, self.timer = spine.cluster, spine.clock, spine.timer
        self.steps = StepRunner(spine.timer, spine.clock, spine.new_threads().offload)
        self.brokers = AskedBrokers(connect, self.clock)
        self.positions = ReaderPositions(
            self.brokers,
            self.clock,
            readings,
            matcher(config.lag.groups),
            matcher(config.lag.topics),
            reads=config.gateway_lag.reads,
        )
        self.rounds: LagRounds | None = None
        self.stopped = False

    def start(self) -> None:
        """Begin to measure, now or later."""
        if self.stopped:
            return
        cluster_id = self.cluster.cluster_id
        if cluster_id is None:
            self.timer.schedule(self.clock.monotonic_ms() + LOOK_MS, self.start)
            return
        self.rounds = LagRounds(
            self.positions,
            self.config.lag,
            self.config.gateway_lag.interval_ms,
            cluster_id=cluster_id,
            node_id=NO_NODE,
            source=self.source,
            clock=self.clock,
            timer=self.timer,
            steps=self.steps,
            metrics=CLIENT_ROUNDS,
        )
        self.rounds.start()

    def stop(self) -> None:
        """Write nothing any more. The series of clients end by their silence."""
        self.stopped = True
        if self.rounds is not None:
            self.rounds.stop()
        self.steps.stop()
        self.brokers.interrupt()
        self.steps.offload(self.brokers.close, lambda _outcome: None)

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the rounds."""
        if self.rounds is not None:
            yield from self.rounds.metric_rows()
