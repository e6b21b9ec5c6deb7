"""What quotas cost a request: CPU time of recording into a manager, by how many levels have quotas.

The loop around the calls is measured by itself and taken off. Every budget has all of its windows in use.

Usage, from the folder above: ``python -m bench.quota [--rounds 7]``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from bench.harness import head, spread
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock

CALLS = 50_000
GOALS_US = {"no quota set": 0.3, "one level": 3.0, "all levels": 3.0}
ENOUGH = 1e12
"""A quota that nobody reaches: the price of a violation is a row of its own."""
ONE_LEVEL = (ClientQuotaEntity(client_id=DEFAULT),)
ALL_LEVELS = (
    ClientQuotaEntity(user="u", client_id="c"),
    ClientQuotaEntity(user="u", client_id=DEFAULT),
    ClientQuotaEntity(user="u"),
    ClientQuotaEntity(user=DEFAULT, client_id="c"),
    ClientQuotaEntity(user=DEFAULT, client_id=DEFAULT),
    ClientQuotaEntity(user=DEFAULT),
    ClientQuotaEntity(client_id="c"),
    *ONE_LEVEL,
)
Call = Callable[[int], object]


def managers(
    entities: tuple[ClientQuotaEntity, ...], bound: float = ENOUGH
) -> tuple[QuotaManagers, MockClock]:
    """Managers with a quota of every entity, and a client that was busy for eleven seconds."""
    clock = MockClock()
    made = QuotaManagers(QuotaConfigs(), clock)
    for entity in entities:
        made.apply(entity, {"producer_byte_rate": bound, "request_percentage": bound})
    for _ in range(12):
        made.produce.record_and_throttle_ms("u", "c", 1000, clock.now_ms())
        made.request.record_ns_and_throttle_ms("u", "c", 1000, clock.now_ms())
        clock.advance(1000)
    return made, clock


def many_clients() -> Call:
    """A thousand clients with a budget each, in turns."""
    produce = managers(ONE_LEVEL)[0].produce
    clients = [f"client-{number}" for number in range(1000)]
    now_ms = MockClock().now_ms()

    def call(number: int) -> object:
        return produce.record_and_throttle_ms("u", clients[number % 1000], 1000, now_ms)

    return call


def bandwidth(entities: tuple[ClientQuotaEntity, ...], bound: float = ENOUGH) -> Call:
    """What a produce request records."""
    made, clock = managers(entities, bound)
    record, now_ms = made.produce.record_and_throttle_ms, clock.now_ms()
    return lambda number: record("u", "c", 1000, now_ms)


def bandwidth_and_time(entities: tuple[ClientQuotaEntity, ...]) -> Call:
    """Both quotas of a produce request."""
    made, clock = managers(entities)
    size, spent, now_ms = made.produce, made.request, clock.now_ms()
    return lambda number: max(
        size.record_and_throttle_ms("u", "c", 1000, now_ms),
        spent.record_ns_and_throttle_ms("u", "c", 50_000, now_ms),
    )


def mutation() -> Call:
    """One topic of a CreateTopics request."""
    made, _ = managers(())
    made.apply(ONE_LEVEL[0], {"controller_mutation_rate": ENOUGH})
    quota = made.controller_mutation.quota_for("u", "c", strict=True)
    return lambda number: quota.record(1)


def cpu_us(call: Call) -> float:
    """CPU microseconds of one call."""
    begin = time.process_time()
    for number in range(CALLS):
        call(number)
    return (time.process_time() - begin) / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(head("quota"), file=sys.stderr)
    off = managers(())[0].produce
    calls: dict[str, Call] = {
        "the loop": lambda number: None,
        "no quota set, one bool": lambda number: off.is_enabled,
        "no quota set": bandwidth(()),
        "one level": bandwidth(ONE_LEVEL),
        "all levels": bandwidth(ALL_LEVELS),
        "one level, 1000 clients": many_clients(),
        "one level, violated": bandwidth(ONE_LEVEL, bound=1),
        "one level, bytes and time": bandwidth_and_time(ONE_LEVEL),
        "controller mutation": mutation(),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            spent[name].append(cpu_us(call))
    loop_us = min(spent.pop("the loop"))
    for name, values in spent.items():
        net = [max(value - loop_us, 0) for value in values]
        goal = GOALS_US.get(name)
        reached = statistics.median(net) <= goal if goal else None
        verdict = "" if goal is None else f"  ({'reached' if reached else 'MISSED'}: goal {goal})"
        print(f"  {name:<26}{spread(net, 2):>24} µs{verdict}")


if __name__ == "__main__":
    main()
