"""A destination that keeps the totals it gets, and sudden deaths of the processes that send them."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from support.hosts import ServeProcess
from support.otlp_collector import Exchange

Process = TypeVar("Process", bound=ServeProcess)


@dataclass(eq=False)
class TotalsCollector:
    """A collector's mood: accepts requests, and keeps the totals in them, in the order of arrival."""

    of: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By the values of the point's attributes, with commas between them."""

    def __call__(self, exchange: Exchange) -> None:
        request = ExportMetricsServiceRequest.FromString(exchange.body())
        for entry in request.resource_metrics:
            for metric in entry.scope_metrics[0].metrics:
                for point in metric.sum.data_points:
                    name = ",".join(each.value.string_value for each in point.attributes)
                    self.of[name].append(point.as_double)
        exchange.answer(200)

    @property
    def latest(self) -> dict[str, float]:
        return {name: totals[-1] for name, totals in list(self.of.items())}

    def went_back(self) -> dict[str, list[float]]:
        """The series of which a total was smaller than the one before."""
        return {name: totals for name, totals in self.of.items() if totals != sorted(totals)}


def random_moments(deaths: int, longest_s: float, seed: int = 7) -> Iterator[random.Random]:
    """Wait for a random time before each of so many deaths."""
    chance = random.Random(seed)
    for _ in range(deaths):
        time.sleep(chance.uniform(0, longest_s))
        yield chance


def killed(processes: Sequence[Process], chance: random.Random) -> Process:
    """End one of the processes with SIGKILL; return it."""
    process = chance.choice(processes)
    process.kill()
    return process
