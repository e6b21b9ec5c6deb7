"""The cost of quotas to a request, by the number of levels with quotas: CPU time of recording into a manager,
and of the dispatcher's work.

The loop around the calls is measured separately and subtracted, and so is a request without quotas from one
with them. Every budget has all of its windows in use.

Usage, from the folder above: ``python -m bench.quota [--rounds 7]``
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

from bench.harness import head, spread, verdict
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import load_handlers
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.heartbeat import HeartbeatRequest
from support.broker import make_broker, make_connection

CALLS = 50_000
GOALS_US = {"the dispatcher's check": 0.3, "no quota set": 0.3, "one level": 3.0, "all levels": 3.0}
ENOUGH = 1e12
"""A quota that is never reached: a violation has its own row."""
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
        made.produce.record_and_throttle_ms("u", "c", 1000, clock.monotonic_ms())
        made.request.record_ns_and_throttle_ms("u", "c", 1000, clock.monotonic_ms())
        clock.advance(1000)
    return made, clock


def many_clients() -> Call:
    """A thousand clients with a budget each, in turn."""
    produce = managers(ONE_LEVEL)[0].produce
    clients = [f"client-{number}" for number in range(1000)]
    now_ms = MockClock().monotonic_ms()

    def call(number: int) -> object:
        return produce.record_and_throttle_ms("u", clients[number % 1000], 1000, now_ms)

    return call


def bandwidth(entities: tuple[ClientQuotaEntity, ...], bound: float = ENOUGH) -> Call:
    """The records of one produce request."""
    made, clock = managers(entities, bound)
    record, now_ms = made.produce.record_and_throttle_ms, clock.monotonic_ms()
    return lambda number: record("u", "c", 1000, now_ms)


def bandwidth_and_time(entities: tuple[ClientQuotaEntity, ...]) -> Call:
    """Both quotas of a produce request."""
    made, clock = managers(entities)
    size, spent, now_ms = made.produce, made.request, clock.monotonic_ms()
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


def request(entities: tuple[ClientQuotaEntity, ...]) -> Call:
    """A whole small request in the dispatcher, from bytes to bytes."""
    broker = make_broker()
    for entity in entities:
        broker.quotas.apply(entity, dict.fromkeys(broker.quotas.by_key, ENOUGH))
    dispatcher, connection = Dispatcher(broker, load_handlers()), make_connection()
    dispatcher.monotonic_ns = time.monotonic_ns
    asked = HeartbeatRequest(group_id="g", member_id="m")
    frame = request_header(RequestHeader(HeartbeatRequest.API_KEY, 4, 1, "c"), flexible=True)
    frame += encode(asked, 4)
    return lambda number: dispatcher.answer(frame, 0, connection)


def dispatchers_check() -> Call:
    """The cost of a request without any quota."""
    broker = make_broker()
    dispatcher = Dispatcher(broker, load_handlers())

    def call(number: int) -> object:
        started_ns = dispatcher.monotonic_ns() if dispatcher.quotas.is_enabled else None
        return number if started_ns is not None else None

    return call


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
        "the dispatcher's check": dispatchers_check(),
        "a request, no quota set": request(()),
        "a request, one level": request(ONE_LEVEL),
        "a request, all levels": request(ALL_LEVELS),
    }
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            spent[name].append(cpu_us(call))
    loop_us = min(spent.pop("the loop"))
    without = spent["a request, no quota set"]
    for levels in ("one level", "all levels"):
        rows = zip(spent[f"a request, {levels}"], without, strict=True)
        spent[f"  more than without: {levels}"] = [loop_us + some - none for some, none in rows]
    for name, values in spent.items():
        net = [value - loop_us for value in values]
        goal = GOALS_US.get(name)
        beside = "" if goal is None else f"  ({verdict(statistics.median(net), goal)}: goal {goal})"
        print(f"  {name:<30}{spread(net, 2):>24} µs{beside}")


if __name__ == "__main__":
    main()
