"""A scrape of many client series: odradek-prometheus beside prometheus_client, with the same series.

Clients send the recorded pushes of Java producers. A page is rendered as the plugin does, on a thread beside
a loop whose longest stop is measured; then prometheus_client renders families with the same names, labels and
values.

Usage, from the folder above: ``python -m bench.scrape [--series 100000]``
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from bench.harness import REACHED, head, verdict
from bench.temporality import labeled_push
from odradek.temporality import Limits, TotalsSettings
from odradek.temporality.budgets.policy import BudgetLimits
from odradek_prometheus.client_series import ClientSeries
from odradek_prometheus.exposition import Exposition, ExpositionSettings
from odradek_prometheus.families import Family
from odradek_prometheus.label_values import Labels
from odradek_prometheus.scrape_listener import Asked, rendered
from odradek_prometheus.text_format import Format
from support.budget_clients import NO_BUDGET
from support.exposed_clients import MemoryStore, NoDestination

GOAL_CPU_S = 2.0
GOAL_STOP_MS = 20.0
TICK_S = 0.001
BATCH = 40


def fleet(wanted: int) -> Exposition:
    """An exposition with at least as many series."""
    exposition = Exposition(ExpositionSettings(budgets=BudgetLimits(**NO_BUDGET)))
    limits = Limits(max_streams=2 * wanted, max_bytes=4 << 30)
    forwarder = exposition.wrap(NoDestination(), TotalsSettings(limits=limits))
    forwarder.store_in(MemoryStore())
    exposition.load(0)
    series, number, spent_s = 0, 0, 0.0
    while series < wanted:
        batch = [labeled_push("java-producer", each, 2) for each in range(number, number + BATCH)]
        number += BATCH
        forwarder.committed(batch)
        began = time.process_time()
        series += sum(map(len, exposition.update(batch).touched))
        spent_s += time.process_time() - began
    print(f"  {number} clients, {series} series; pictures: {1e6 * spent_s / series:.2f} us/series")
    return exposition


async def scraped(clients: list[ClientSeries], asked: Asked) -> tuple[float, float, float, int]:
    """CPU seconds, wall seconds and the longest stop of the loop in ms for a page, and its bytes."""
    loop, stops_s = asyncio.get_running_loop(), [0.0]

    async def tick() -> None:
        last_s = time.perf_counter()
        while True:
            await asyncio.sleep(TICK_S)
            now_s = time.perf_counter()
            stops_s.append(now_s - last_s - TICK_S)
            last_s = now_s

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    page = await loop.run_in_executor(None, rendered, clients, time.time_ns() // 1_000_000, asked)
    spent = time.process_time() - cpu_s, time.perf_counter() - wall_s
    await asyncio.sleep(2 * TICK_S)  # a stop at the very end is over when the next tick measures it
    ticking.cancel()
    return *spent, 1000 * max(stops_s), sum(map(len, page))


class Fleet(Collector):
    """The same series for prometheus_client."""

    def __init__(self, clients: list[ClientSeries]) -> None:
        self.rows: dict[Family, list[tuple[Labels, float]]] = {}
        for client in clients:
            for each in client.series():
                self.rows.setdefault(each.family, []).append((each.labels, each.value))

    def collect(self) -> Iterator[Metric]:
        for family, rows in self.rows.items():
            metric = Metric(family.base, family.help, family.type)
            metric.samples = [Sample(family.name, dict(labels), value) for labels, value in rows]
            yield metric


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=100_000)
    wanted = parser.parse_args().series
    print(head("scrape"), file=sys.stderr)
    clients = fleet(wanted).clients()
    chance = random.Random(1)
    for client in clients:
        # With the same values for all clients, pages would be compressed better than real ones.
        for position, value in enumerate(client.values):
            client.values[position] = value * chance.randrange(1, 1_000)
    worst_s = worst_ms = 0.0
    for name, asked in {
        "OpenMetrics": Asked(Format(), False, 0, 1),
        "OpenMetrics, gzip": Asked(Format(), True, 0, 1),
        "text 0.0.4, gzip": Asked(Format(openmetrics=False), True, 0, 1),
    }.items():
        for turn in ("first", "again"):
            cpu_s, wall_s, stop_ms, size = asyncio.run(scraped(clients, asked))
            worst_s, worst_ms = max(worst_s, cpu_s), max(worst_ms, stop_ms)
            print(
                f"  {name:18} {turn}: {cpu_s:5.2f} s CPU, {wall_s:5.2f} s, "
                f"loop held at most {stop_ms:5.1f} ms, {size / 1e6:5.1f} MB"
            )
    registry = CollectorRegistry()
    registry.register(Fleet(clients))
    for name, generate in (("text", generate_latest), ("OpenMetrics", openmetrics.generate_latest)):
        began = time.process_time()
        size = len(generate(registry))
        spent_s = time.process_time() - began
        print(f"  prometheus_client, {name:11}: {spent_s:5.2f} s CPU, {size / 1e6:5.1f} MB")
    verdicts = verdict(worst_s, GOAL_CPU_S), verdict(worst_ms, GOAL_STOP_MS)
    print(f"  {verdicts[0]}: goal {GOAL_CPU_S} s CPU; {verdicts[1]}: goal {GOAL_STOP_MS} ms")
    return 0 if {*verdicts} == {REACHED} else 1


if __name__ == "__main__":
    sys.exit(main())
