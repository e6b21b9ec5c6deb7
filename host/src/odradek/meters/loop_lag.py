"""How late the event loop runs: each request that arrives meanwhile waits as long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from odradek.meters.instrument import Instrument
from odradek.metrics.bucket_counts import BucketCounts
from odradek.telemetry.client_metrics_stats import MetricRow

INTERVAL_S: Final = 0.1
BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)

LOOP_LAG_INSTRUMENTS = {
    "loop-lag-bucket": Instrument(
        "odradek.loop.lag.bucket", "counter", "{probe}", "Probes of the event loop that were at most so late"
    ),
    "loop-lag-sum": Instrument("odradek.loop.lag.sum", "counter", "s", "Sum of the delays of the probes"),
}
"""By row name."""


class LoopLag:
    """Asks the running loop ten times a second to be called, and notes how late the call comes."""

    def __init__(self) -> None:
        self.delays_s = BucketCounts(BOUNDS_S)
        self.loop = asyncio.get_running_loop()
        self.due_s = 0.0
        self.handle = self.probe()

    def probe(self) -> asyncio.TimerHandle:
        """Ask for the next call."""
        self.due_s = self.loop.time() + INTERVAL_S
        return self.loop.call_at(self.due_s, self.called)

    def called(self) -> None:
        """The loop has come to it."""
        self.delays_s.add(max(self.loop.time() - self.due_s, 0.0))
        self.handle = self.probe()

    def stop(self) -> None:
        """Ask no more."""
        self.handle.cancel()

    def metric_rows(self) -> Iterator[MetricRow]:
        """The delays since the start."""
        yield from bucket_rows("loop-lag", self.delays_s, {})


def bucket_rows(name: str, counts: BucketCounts, labels: dict[str, str]) -> Iterator[MetricRow]:
    """The rows of a histogram: counters with the label ``le``, as Prometheus has them, and the sum."""
    for bound, number in counts.up_to():
        yield MetricRow(f"{name}-bucket", "counter", {**labels, "le": bound}, number)
    yield MetricRow(f"{name}-sum", "counter", labels, counts.total)
