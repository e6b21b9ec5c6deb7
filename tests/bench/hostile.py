"""A host under two hundred hostile clients: what well-behaved clients notice, and what the host holds.

First the well-behaved clients run alone, then beside the hostile ones. Between the two phases there is a
control: the same hostile clients, but they attack a second host. It shows how much of the delay comes from
the machine, on which the hostile clients use the well-behaved clients' core; the rest comes from the host.

Usage, from the folder above:
``python -m bench.hostile [--seconds 300] [--quiet 60] [--control 60] [--hostile 200]``. Exits with 1 if a
goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import Server, anonymous_bytes, cores, head, pipes, running, spawn

INTERVAL_MS = 200
SAMPLE_S = 0.25
WARM_UP_S = 3.0
LEAVING_S = 60.0
"""How long hostile clients may take to end."""
LOOP_GOAL_MS = 5.0
CALL_GOAL_MS = 50.0
SLOWDOWN_GOAL = 2.0
MIB = 1 << 20
MODULE = [sys.executable, "-m"]
LAST = ["chrt", "--idle", "0"]
"""Runs a program while no other one wants its core. One with the lowest priority would keep the core for up
to 4 ms, the kernel's tick, after another program has something to do."""


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
    """The figures of the quiet phase, of the control or of the hostile phase."""

    def __init__(self, host: Lines, good: Lines, peak_bytes: int) -> None:
        self.host, clients = host.report(), good.report()
        self.peak_bytes = peak_bytes
        self.errors: dict[str, int] = clients["errors"]
        self.ms: dict[str, list[float]] = {kind: sorted(values) for kind, values in clients["ms"].items()}

    def percentile_ms(self, kind: str, share: float) -> float:
        values = self.ms[kind]
        return values[int(share * (len(values) - 1))]

    def slowdown(self, other: Phase) -> float:
        """How much higher p99 is than in another phase: for the kind of request for which it is the most."""
        return max(self.percentile_ms(kind, 0.99) / other.percentile_ms(kind, 0.99) for kind in self.ms)


def peak_bytes(pid: int, until_s: float) -> int:
    """The most memory of a process until a time."""
    most = 0
    while time.monotonic() < until_s:
        most = max(most, anonymous_bytes(pid))
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


@contextmanager
def attack(port: int, seconds: float, count: int, core: int | None) -> Iterator[subprocess.Popen[str]]:
    """Run the hostile clients.

    The good clients take the core from them, or they would wait for it, and not for the host.
    """
    numbers = (port, seconds, count)
    process = spawn([*LAST, *MODULE, "bench.hostile_clients", *map(str, numbers)], core)
    try:
        yield process
    finally:
        process.kill()


@dataclass(frozen=True, slots=True)
class Figures:
    """The three phases, and what the hostile clients counted."""

    quiet: Phase
    control: Phase
    mixed: Phase
    hostile: dict[str, Any]


def measure(arguments: argparse.Namespace, folder: Path) -> Figures:
    """Run the three phases with the same well-behaved clients."""
    host_core, load_core = cores()
    with ExitStack() as stack:
        sink = stack.enter_context(running([*MODULE, "bench.delivery_sink", "http"], core=load_core))
        command = [*MODULE, "bench.hostile_host"]
        server = stack.enter_context(running([*command, *settings(folder / "1", sink)], core=host_core))
        good = spawn([*MODULE, "bench.good_clients", str(server.port)], load_core)
        stack.callback(good.kill)
        host, clients = Lines(server.process), Lines(good)
        assert clients.stdout.readline() == "ready\n"
        time.sleep(WARM_UP_S)
        host.report(), clients.report()
        quiet = Phase(host, clients, peak_bytes(server.pid, time.monotonic() + arguments.quiet))
        # Beside the first host on its core, and the first one has it whenever it needs it.
        second_host = running([*LAST, *command, *settings(folder / "2", sink)], core=host_core)
        with second_host as second, attack(second.port, arguments.control, arguments.hostile, load_core):
            control = Phase(host, clients, peak_bytes(server.pid, time.monotonic() + arguments.control))
        time.sleep(WARM_UP_S)
        host.report(), clients.report()
        with attack(server.port, arguments.seconds, arguments.hostile, load_core) as hostile:
            mixed = Phase(host, clients, peak_bytes(server.pid, time.monotonic() + arguments.seconds))
            output, _ = hostile.communicate(timeout=LEAVING_S)
        return Figures(quiet, control, mixed, json.loads(output))


def report(figures: Figures) -> bool:
    """Print the tables; return whether every goal was reached."""
    quiet, control, mixed, hostile = figures.quiet, figures.control, figures.mixed, figures.hostile
    print(f"{'':<38}{'quiet':>9}{'control':>9}{'hostile':>9}{'/ quiet':>9}{'/ control':>11}")
    for kind in sorted(quiet.ms):
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            found = [phase.percentile_ms(kind, share) for phase in (quiet, control, mixed)]
            ratios = f"{found[2] / found[0]:>9.1f}{found[2] / found[1]:>11.1f}"
            print(f"{f'{kind}, {name}, ms':<38}" + "".join(f"{each:>9.2f}" for each in found) + ratios)
    for name, key in (
        ("one call on the loop, p99.9, ms", "call_p999_ms"),
        ("loop busy without a break, p99.9, ms", "cpu_p999_ms"),
        ("loop busy without a break, max, ms", "cpu_max_ms"),
        ("loop late for a timer, p99.9, ms", "wall_p999_ms"),
        ("loop late for a timer, max, ms", "wall_max_ms"),
    ):
        row = "".join(f"{phase.host[key]:>9.2f}" for phase in (quiet, control, mixed))
        print(f"{name:<38}{row}")
    row = "".join(f"{phase.peak_bytes / MIB:>9.0f}" for phase in (quiet, control, mixed))
    print(f"{'memory, peak, MiB':<38}{row}")
    print("\ncalls that kept the loop busy for longer than 5 ms: how often, and the longest, ms")
    for name, (times, longest_ms) in sorted(mixed.host["holds"].items(), key=lambda row: -row[1][1]):
        print(f"  {name:<70}{times:>8}{longest_ms:>8.1f}")
    print(f"\nerrors of the good clients: {mixed.errors or 'none'}")
    delivery = {key: mixed.host[key] for key in ("pushes", "delivered", "queued", "dropped")}
    print(f"pushes in the log, and of a forwarder: {delivery}")
    print(f"hostile requests answered: {hostile['answered']:,}; behaviors, and how they ended:")
    for name, count in sorted(hostile["found"].items()):
        print(f"  {name:<50}{count:>8}")
    slowest = mixed.slowdown(quiet)
    longest_ms = max((longest_ms for _, longest_ms in mixed.host["holds"].values()), default=0.0)
    goals = {
        "hostile requests were answered": hostile["answered"] > 0,
        f"one call below {LOOP_GOAL_MS:.0f} ms at p99.9": 0 < mixed.host["call_p999_ms"] < LOOP_GOAL_MS,
        f"no call above {CALL_GOAL_MS:.0f} ms": longest_ms < CALL_GOAL_MS,
        f"loop busy below {LOOP_GOAL_MS:.0f} ms at p99.9": 0 < mixed.host["cpu_p999_ms"] < LOOP_GOAL_MS,
        f"good clients' p99 below {SLOWDOWN_GOAL:.0f} times the quiet one": 0 < slowest < SLOWDOWN_GOAL,
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
    parser.add_argument("--quiet", type=float, default=60, help="seconds of the quiet phase")
    parser.add_argument("--control", type=float, default=60, help="seconds of the control")
    parser.add_argument("--hostile", type=int, default=200, help="hostile clients")
    arguments = parser.parse_args()
    print(head("hostile"), file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(arguments, Path(folder))
    sys.exit(0 if report(figures) else 1)


if __name__ == "__main__":
    main()
