"""Budgets for series: what they add to the creation of a series and to a push, and the time of a ranking.

Each client sends the recorded pushes of a Java producer with a client id of its own. The same engine runs
without budgets, with budgets that are not reached, and with budgets that fold almost all clients.

Usage, from the folder above: ``python -m bench.series_budgets [--series 1000000]``
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from bench.harness import head
from bench.temporality import labeled_push
from odradek.plugin import TelemetryRecord
from odradek.temporality import Engine, Limits
from odradek.temporality.budgets.folding import Folding
from odradek.temporality.budgets.policy import BudgetLimits
from odradek.temporality.budgets.ranking import BY, report
from odradek.temporality.budgets.series_counts import ClientFacts

CLIENT = "java-producer"
CLIENTS = 1_000
ROUNDS = 3
GOAL_RANKING_MS = 50.0
NO_LIMITS = Limits(max_streams=1 << 31, max_bytes=16 << 30)
UNREACHED = BudgetLimits(series=1 << 40, principal_series=1 << 40, app_series=1 << 40, client_series=1 << 40)
Add = Callable[[TelemetryRecord, ClientFacts], None]


def facts_of(number: int) -> ClientFacts:
    return ClientFacts(f"app-{number % 1_000}", f"user-{number % 10}", "apache-kafka-java", f"app-{number}")


def adding(engine: Engine, folding: Folding | None) -> Add:
    """Return a function that adds a record."""

    def add(record: TelemetryRecord, facts: ClientFacts) -> None:
        if folding is None:
            engine.convert(record)
            return
        before = folding.before(record)
        engine.convert(record)
        folding.after(record, facts, before)

    return add


def costs(budgets: BudgetLimits | None) -> tuple[float, float, int]:
    """Microseconds per first and per later push of a client, and the series of a client."""
    engine = Engine(NO_LIMITS, keep_gauges=True)
    folding = None if budgets is None else Folding(engine, budgets)
    add = adding(engine, folding)
    first = [(labeled_push(CLIENT, number, 2), facts_of(number)) for number in range(CLIENTS)]
    later = [(labeled_push(CLIENT, number, 3), facts_of(number)) for number in range(CLIENTS)]
    add(*first[0])
    add(*later[0])
    times = []
    for pushes in (first[1:], later[1:]):
        gc.collect()
        began = time.process_time()
        for push in pushes:
            add(*push)
        times.append((time.process_time() - began) / len(pushes) * 1e6)
    state = engine.clients.states[first[-1][0].payload.client_instance_id]
    return times[0], times[1], len(state.shape.keys)


def ranking(wanted: int) -> None:
    """Print the time of a ranking of so many series."""
    engine = Engine(NO_LIMITS, keep_gauges=True)
    folding = Folding(engine, UNREACHED)
    add, push, number = adding(engine, folding), labeled_push(CLIENT, 0, 2), 0
    while folding.series.series.series < wanted:
        payload = replace(push.payload, client_instance_id=number.to_bytes(16, "big"))
        add(replace(push, payload=payload), facts_of(number))
        number += 1
    for by in BY:
        began = time.perf_counter()
        report([folding], by, 20, 0)
        spent_ms = (time.perf_counter() - began) * 1e3
        print(f"  by {by:10} {spent_ms:6.2f} ms; goal {GOAL_RANKING_MS:.0f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1_000_000)
    arguments = parser.parse_args()
    print(head("series_budgets"))
    rows = {
        "without budgets": None,
        "budgets that are not reached": UNREACHED,
        "all but a few clients folded": replace(UNREACHED, series=1_000),
    }
    for name, budgets in rows.items():
        found = [costs(budgets) for _ in range(ROUNDS)]
        first, later = min(each[0] for each in found), min(each[1] for each in found)
        series = found[0][2]
        print(
            f"  {name:30} first push {first:6.1f} us, {first / series:5.2f} us per series created; "
            f"later pushes {later:6.1f} us, {later / series:5.2f} us per series"
        )
    print(f"where {arguments.series} series come from")
    ranking(arguments.series)
    return 0


if __name__ == "__main__":
    sys.exit(main())
