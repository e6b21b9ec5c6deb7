"""A host under two hundred hostile clients: what well-behaved clients notice, and what the host holds.

First the well-behaved clients run alone, then beside the hostile ones. Usage, from the folder above:
``python -m bench.hostile [--seconds 300] [--quiet 30] [--hostile 200]``. Exits with 1 if a goal is
missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.harness import Server, cores, head, pipes, rss_bytes, running, spawn

INTERVAL_MS = 200
SAMPLE_S = 0.25
WARM_UP_S = 3.0
LEAVING_S = 60.0
"""How long hostile clients may take to end."""
LOOP_GOAL_MS = 5.0
CALL_GOAL_MS = 50.0
SLOWDOWN_GOAL = 2.0
MIB = 1 << 20


class Lines:
    """A process that answers each line by a line of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.stdin, self.stdout = pipes(process)

    def report(self) -> dict[str, Any]:
        """The figures since the previous report."""
        self.stdin.write("report\n")
        self.stdin.flush()
        found: dict[str, Any] = json.loads(self.stdout.readline())
        return found


class Phase:
    """The figures of the quiet or of the hostile phase."""

    def __init__(self, host: Lines, good: Lines, peak_bytes: int) -> None:
        self.host, clients = host.report(), good.report()
        self.peak_bytes = peak_bytes
        self.errors: dict[str, int] = clients["errors"]
        self.ms: dict[str, list[float]] = {kind: sorted(values) for kind, values in clients["ms"].items()}

    def percentile_ms(self, kind: str, share: float) -> float:
        values = self.ms[kind]
        return values[int(share * (len(values) - 1))]


def peak_bytes(pid: int, until_s: float) -> int:
    """The most private memory of a process until a time."""
    most = 0
    while time.monotonic() < until_s:
        most = max(most, rss_bytes(pid))
        time.sleep(SAMPLE_S)
    return most


def settings(folder: Path, sink: Server) -> list[str]:
    return [
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"data.dir={folder / 'data'}",
        "subscriptions.all.metrics=*",
        f"subscriptions.all.interval.ms={INTERVAL_MS}",
        f"plugins.otlp.endpoint=http://127.0.0.1:{sink.port}",
    ]


def measure(arguments: argparse.Namespace, folder: Path) -> tuple[Phase, Phase, dict[str, Any]]:
    """The quiet phase, the hostile phase, and what the hostile clients counted."""
    host_core, load_core = cores()
    with ExitStack() as stack:
        module = [sys.executable, "-m"]
        sink = stack.enter_context(running([*module, "bench.delivery_sink", "http"], core=load_core))
        command = [*module, "bench.hostile_host", *settings(folder, sink)]
        server = stack.enter_context(running(command, core=host_core))
        good = spawn([*module, "bench.good_clients", str(server.port)], load_core)
        stack.callback(good.kill)
        host, clients = Lines(server.process), Lines(good)
        assert clients.stdout.readline() == "ready\n"
        time.sleep(WARM_UP_S)
        host.report(), clients.report()
        most = peak_bytes(server.pid, time.monotonic() + arguments.quiet)
        quiet = Phase(host, clients, most)
        numbers = (server.port, arguments.seconds, arguments.hostile)
        # The lowest priority, or the good clients would wait for a core, and not for the host.
        hostile = spawn(["nice", "-n", "19", *module, "bench.hostile_clients", *map(str, numbers)], load_core)
        stack.callback(hostile.kill)
        most = peak_bytes(server.pid, time.monotonic() + arguments.seconds)
        mixed = Phase(host, clients, most)
        output, _ = hostile.communicate(timeout=LEAVING_S)
        return quiet, mixed, json.loads(output)


def report(quiet: Phase, mixed: Phase, hostile: dict[str, Any]) -> bool:
    """Print the tables; return whether every goal was reached."""
    print(f"{'':<34}{'quiet':>10}{'hostile':>10}{'ratio':>8}")
    for kind in sorted(quiet.ms):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            before, after = (phase.percentile_ms(kind, share) for phase in (quiet, mixed))
            print(f"{f'{kind}, {name}, ms':<34}{before:>10.2f}{after:>10.2f}{after / before:>8.1f}")
    for name, key in (
        ("one call on the loop, p99.9, ms", "call_p999_ms"),
        ("loop busy without a break, p99.9, ms", "cpu_p999_ms"),
        ("loop busy without a break, max, ms", "cpu_max_ms"),
        ("loop late for a timer, p99.9, ms", "wall_p999_ms"),
        ("loop late for a timer, max, ms", "wall_max_ms"),
    ):
        print(f"{name:<34}{quiet.host[key]:>10.2f}{mixed.host[key]:>10.2f}")
    print(f"{'memory, peak, MiB':<34}{quiet.peak_bytes / MIB:>10.0f}{mixed.peak_bytes / MIB:>10.0f}")
    print("\ncalls that kept the loop busy for longer than 5 ms: how often, and the longest, ms")
    for name, (times, longest_ms) in sorted(mixed.host["holds"].items(), key=lambda row: -row[1][1]):
        print(f"  {name:<70}{times:>8}{longest_ms:>8.1f}")
    print(f"\nerrors of the good clients: {mixed.errors or 'none'}")
    delivery = {key: mixed.host[key] for key in ("pushes", "delivered", "queued", "dropped")}
    print(f"pushes in the log, and of a forwarder: {delivery}")
    print(f"hostile requests answered: {hostile['answered']:,}; behaviors, and how they ended:")
    for name, count in sorted(hostile["found"].items()):
        print(f"  {name:<50}{count:>8}")
    slowest = max(mixed.percentile_ms(kind, 0.99) / quiet.percentile_ms(kind, 0.99) for kind in quiet.ms)
    longest_ms = max((longest_ms for _, longest_ms in mixed.host["holds"].values()), default=0.0)
    goals = {
        f"one call below {LOOP_GOAL_MS:.0f} ms at p99.9": mixed.host["call_p999_ms"] < LOOP_GOAL_MS,
        f"no call above {CALL_GOAL_MS:.0f} ms": longest_ms < CALL_GOAL_MS,
        f"loop busy below {LOOP_GOAL_MS:.0f} ms at p99.9": mixed.host["cpu_p999_ms"] < LOOP_GOAL_MS,
        f"good clients' p99 below {SLOWDOWN_GOAL:.0f} times the quiet one": slowest < SLOWDOWN_GOAL,
        "no error of a good client": not mixed.errors,
        "the accounts balance": mixed.host["balanced"],
        "no unexpected error of the host": not mixed.host["unexpected_errors"],
    }
    for goal, reached in goals.items():
        print(f"{'reached' if reached else 'MISSED'}: {goal}")
    return all(goals.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="of the hostile phase")
    parser.add_argument("--quiet", type=float, default=30, help="seconds of the quiet phase")
    parser.add_argument("--hostile", type=int, default=200, help="hostile clients")
    arguments = parser.parse_args()
    print(head("hostile"), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        quiet, mixed, hostile = measure(arguments, Path(folder))
    sys.exit(0 if report(quiet, mixed, hostile) else 1)


if __name__ == "__main__":
    main()
