"""The engine of the console with many clients: memory, time of a push, of a full list, of one client.

5000 clients with 200 series each push once a minute for some hours; the times after the first pushes count.
Fails above the goals.

Usage, from the folder above: ``python -m bench.console [--clients 5000] [--series 200] [--pushes 60]``
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.console_fleet import INTERVAL_S, Pushes
from bench.harness import REACHED, head, verdict
from odradek_console.engine.fleet import Fleet
from odradek_console.pictures import client_detail, client_row

GOAL_MIB = 1024
GOAL_LIST_S = 0.2
GOAL_ONE_S = 0.2
EPOCH_S = 1_760_000_000


def memory_mib() -> float:
    """Resident memory of this process."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def timed(act: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    began_s = time.perf_counter()
    act()
    return time.perf_counter() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--pushes", type=int, default=60)
    options = parser.parse_args()
    print(head("console"))
    before_mib, fleet, spent_s = memory_mib(), Fleet(), 0.0
    pushes = Pushes(options.clients, options.series, EPOCH_S)
    for turn in range(options.pushes):
        for record in pushes.turn(turn):
            began_s = time.process_time()
            fleet.add(record)
            spent_s += (time.process_time() - began_s) * (turn > 0)
    now_ms = (EPOCH_S + options.pushes * INTERVAL_S) * 1000
    clients = list(fleet.clients.values())
    held_mib = fleet.held_bytes / 2**20

    def listed() -> None:
        for each in clients:
            client_row(fleet, each, now_ms)

    first_s, again_s = timed(listed), timed(listed)
    one_s = timed(lambda: client_detail(fleet, clients[0], now_ms))
    used_mib = memory_mib() - before_mib
    print(f"{options.clients} clients x {options.series} series, {options.pushes} pushes each")
    print(
        f"  memory          {used_mib:8.0f} MiB, counted {held_mib:.0f} MiB, histories at {fleet.scale:.2f}"
    )
    print(f"  a push          {spent_s / max(1, pushes.offset - options.clients) * 1e6:8.0f} µs of CPU")
    print(f"  list, findings  {first_s * 1e3:8.0f} ms")
    print(f"  list again      {again_s * 1e3:8.0f} ms")
    print(f"  one in full     {one_s * 1e3:8.0f} ms")
    verdicts = verdict(used_mib, GOAL_MIB), verdict(again_s, GOAL_LIST_S), verdict(one_s, GOAL_ONE_S)
    if {*verdicts} != {REACHED}:
        sys.exit(f"memory, list, one in full: {', '.join(verdicts)}")


if __name__ == "__main__":
    main()
