"""How late the event loop runs: each request that arrives meanwhile waits as long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from odradek.metrics.bucket_counts import BucketCounts
from odradek.metrics.metric import MetricRow, Metrics

INTERVAL_S: Final = 0.1
BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


def histogram(prefix: str, unit: str, sentence: str, of_sum: str, *labels: str) -> Metrics[BucketCounts]:
    """Declare a histogram of seconds: a counter with the label ``le``, as Prometheus has it, and the sum."""
    made = Metrics[BucketCounts](prefix, *labels)
    made.counter("bucket", unit, sentence, lambda it: dict(it.up_to()), by="le")
    made.counter("sum", "s", of_sum, "total")
    return made


LOOP_LAG = histogram(
    "odradek.loop.lag",
    "{probe}",
    "Probes of the event loop that were at most so late",
    "Sum of the delays of the probes",
)


class LoopLag:
    """Asks the running loop ten times a second to be called, and notes how late the call comes."""

    def __init__(self) -> None:
        self.delays_s = BucketCounts(BOUNDS_S)
        self.loop: asyncio.AbstractEventLoop
        self.due_s = 0.0
        self.handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin on the running loop."""
        self.loop = asyncio.get_running_loop()
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
        if self.handle is not None:
            self.handle.cancel()

    def metric_rows(self) -> Iterator[MetricRow]:
        """The delays since the start."""
        return LOOP_LAG.rows(self.delays_s)
