"""What viewers of the console cost the host: CPU and answer time of a push, with 20 live pages and without.

A fleet of recorded clients pushes to a host, whose topic a console reads. Each viewer has a login of its own,
keeps the event stream of the first page open, and fetches the page again whenever the stream says so, as a
browser does. Windows with and without viewers take turns. Fails above the goal.

Usage, from the folder above: ``python -m bench.console_viewers [--viewers 20] [--clients 1000] [--rounds 8]``
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from contrib.fleet.behavior import mixed
from contrib.fleet.fleet import Fleet
from contrib.fleet.lines import recorded_payload

from bench.harness import REACHED, cpu_ns, head, spread, verdict
from bench.parts import CONNECTIONS, MIX, ConsoleProcess, host
from odradek.client.address import addresses

GOAL_RATIO = 1.05
"""Of a push with viewers to one without."""
WARM_UP_S = 5.0
SETTLE_S = 1.0
"""After viewers come or go."""
PATIENCE_S = 60.0


def token(number: int) -> str:
    return f"the-token-of-viewer-{number}"


def view(port: int, number: int, on: Event, counts: Any) -> None:
    """Look at the first page whenever viewers are wanted."""
    headers = {"Authorization": f"Bearer {token(number)}", "Accept": "text/html", "Accept-Encoding": "gzip"}
    while on.wait():
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        page = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        with suppress(OSError, http.client.HTTPException):
            stream.request("GET", "/events", headers=headers)
            events = stream.getresponse()
            while on.is_set():
                if events.readline().startswith(b"event: changed"):
                    page.request("GET", "/", headers=headers | {"X-Live": "1"})
                    answer = page.getresponse()
                    answer.read()
                    counts[answer.status == 200] += 1
        stream.close()
        page.close()


def viewers(port: int, count: int, on: Event, counts: Any) -> None:
    """The process of all viewers."""
    threads = [threading.Thread(target=view, args=(port, each, on, counts)) for each in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


async def windows(fleet: Fleet, pids: Mapping[str, int], on: Event, options: argparse.Namespace) -> Any:
    """The figures of each window, by whether there are viewers, then by name."""
    found: Any = {False: defaultdict(list), True: defaultdict(list)}
    await asyncio.sleep(WARM_UP_S)
    for number in range(2 * options.rounds):
        is_watched = bool((number + number // 2) % 2)  # off, on, on, off: a drift affects both
        on.set() if is_watched else on.clear()
        await asyncio.sleep(SETTLE_S)
        before = {name: cpu_ns(pid) for name, pid in pids.items()}
        began, answers = fleet.tally.accepted, len(fleet.tally.latency_s)
        await asyncio.sleep(options.seconds)
        accepted = fleet.tally.accepted - began
        for name, pid in pids.items():
            found[is_watched][name].append((cpu_ns(pid) - before[name]) / 1000 / accepted)
        found[is_watched]["answer"].append(statistics.median(fleet.tally.latency_s[answers:]) * 1e6)
    on.clear()
    fleet.over = True
    return found


async def measured(bootstrap: str, pids: Mapping[str, int], on: Event, options: argparse.Namespace) -> Any:
    kinds = mixed(MIX, options.clients)
    payload = recorded_payload(list(dict.fromkeys(kinds)))
    fleet = Fleet(addresses(bootstrap), kinds, CONNECTIONS, payload, settled=True)
    length_s = 2 * options.rounds * (options.seconds + SETTLE_S) + 2 * WARM_UP_S
    running = asyncio.create_task(fleet.run(length_s))
    found = await windows(fleet, pids, on, options)
    running.cancel()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--interval-ms", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=8, help="windows of each kind")
    parser.add_argument("--seconds", type=float, default=6.0, help="of one window")
    options = parser.parse_args()
    print(head("console_viewers"), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        tokens = Path(folder) / "tokens.toml"
        tokens.touch(mode=0o600)
        tokens.write_text(
            "".join(
                f'[[token]]\nname = "viewer-{each}"\nrole = "viewer"\ntoken = "{token(each)}"\n'
                for each in range(options.viewers)
            )
        )
        read = host(stack, Path(folder) / "host", options.interval_ms)
        console = ConsoleProcess("--bootstrap-server", read.bootstrap, "--tokens", str(tokens))
        stack.callback(console.terminate)
        port = int(console.ready.rstrip("/").rpartition(":")[2])
        on, counts = multiprocessing.Event(), multiprocessing.Array("i", [0, 0])
        process = multiprocessing.Process(
            target=viewers, args=(port, options.viewers, on, counts), daemon=True
        )
        process.start()
        began_s = time.monotonic()
        pids = {"host": read.process.pid, "console": console.process.pid}
        found = asyncio.run(measured(read.bootstrap, pids, on, options))
        watched_s = options.rounds * (options.seconds + SETTLE_S)
        process.kill()
    pages, refused = counts[1], counts[0]
    print(f"{options.clients} clients, {time.monotonic() - began_s:.0f} s; {options.viewers} viewers")
    print(f"  {pages / watched_s:.1f} pages/s while there are viewers, {refused} refused")
    ratios = {}
    for name in ("host", "console", "answer"):
        off, on_ = found[False][name], found[True][name]
        ratios[name] = statistics.median(on_) / statistics.median(off)
        what = "µs, the median answer" if name == "answer" else f"µs of CPU of the {name} a push"
        print(f"  without {spread(off, 0)}, with viewers {spread(on_, 0)} {what}: {ratios[name]:.3f} times")
    result = verdict(ratios["host"], GOAL_RATIO)
    print(f"  the host's CPU for a push: {result}")
    if result != REACHED or not pages:
        sys.exit("above the goal")


if __name__ == "__main__":
    main()
