"""CPU time of a request by stage, for some requests of `odradek serve` on uvloop.

The load repeats recorded requests (`native/replay.c`). The windows of a round are: the whole host; a server
that only receives and answers the same bytes, which is the cost of kernel and loop; and the host with one
*probe*, which measures the functions of one place in the code (`stages_host.py`). A stage is its probe
without the probes inside it. So the stages are measured independently of the whole, and the bench fails if
they do not add up to it.

Usage, from the folder above: ``python -m bench.stages [--row small] [--rounds 15] [--seconds 0.1] [--json]``
"""

from __future__ import annotations

import argparse
import json
import math
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.generator import answer
from bench.harness import (
    PATIENCE_S,
    Server,
    UnavailableError,
    build,
    close,
    cores,
    cpu_ns,
    head,
    pipes,
    running,
    spawn,
    verdict,
)
from bench.stages_rows import ROWS, Recorder, Row, base_offset

WHOLE, ECHO = "whole", "echo"
STAGES: Mapping[str, Mapping[str, int]] = {
    "kernel and loop": {ECHO: 1},
    "framing": {"received": 1, "answer": -1, "written": -1},
    "dispatch": {"answer": 1, "read": -1, "reading": -1, "handler": -1, "frame": -1},
    "codec": {"read": 1, "reading": 1, "write": 1},
    "gate and handler": {"handler": 1, "payload": -1, "receivers": -1, "metrics": -1, "log": -1},
    "quota and request metrics": {"metrics": 1},
    "payload": {"payload": 1},
    "receivers": {"receivers": 1},
    "log": {"log": 1},
    "answer": {"frame": 1, "write": -1},
}
"""The sum of probes that is a stage. `payload` of a Produce request is the check of its batches; `receivers`
are the plugins that get a push."""
WINDOWS = (WHOLE, *dict.fromkeys(probe for sums in STAGES.values() for probe in sums))
FAILED = "the stages DO NOT add up to the whole"
TOLERANCE = 0.10
"""How far the sum of the stages may be from the whole."""
WARM_UP_S = 0.05
LEAST_REQUESTS = 100
"""Of a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Microseconds of CPU for each request, and how exactly that is known."""

    us: float
    noise_us: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Cost:
        """The median of the lowest third, and its standard error, roughly: other programs on the machine only
        add time.
        """
        lowest = sorted(values)[: max(1, len(values) // 3)]
        return cls(
            us=statistics.median(lowest), noise_us=(lowest[-1] - lowest[0]) / 2 / math.sqrt(len(lowest))
        )

    @classmethod
    def total(cls, costs: Sequence[tuple[int, Cost]]) -> Cost:
        """The sum of costs, each with its sign."""
        noise_us = math.hypot(*(sign * cost.noise_us for sign, cost in costs))
        return cls(us=sum(sign * cost.us for sign, cost in costs), noise_us=noise_us)

    def __str__(self) -> str:
        measured = self.us if self.us > 2 * self.noise_us else math.nan
        figure = f"{self.us:.1f} ± {self.noise_us:.1f}"
        return figure if verdict(measured, math.inf) == "reached" else "not measured"


Windows = Mapping[str, Sequence[float]]
"""The cost of a request in each round, by probe. Probes that saw no call are left out."""


def ask(server: Server, line: str) -> str:
    """Send a line to a server and return its answer."""
    stdin, stdout = pipes(server.process)
    stdin.write(line + "\n")
    stdin.flush()
    return answer(stdout)


@dataclass(slots=True, kw_only=True)
class Load:
    """The repeated requests of one row."""

    row: Row
    frames: Path
    answer_bytes: int
    core: int | None
    seconds: float
    requests: int = 0
    """Answered by the host in all windows."""

    def window_us(self, server: Server, probe: str) -> float:
        """Microseconds of CPU per request: of a probe, or of the process if it is no probe.

        Raises:
            UnavailableError: The load gave up.
            SystemExit: An answer was wrong.
        """
        ask(server, f"probe {probe}")
        numbers = (str(server.port), str(self.row.connections))
        replay: list[str | Path] = [build("replay"), *numbers, self.frames, str(self.answer_bytes)]
        generator = spawn(replay, self.core)
        stdin, stdout = pipes(generator)

        def mark() -> tuple[int, float]:
            stdin.write("mark\n")
            stdin.flush()
            window = json.loads(answer(stdout))
            if window["different"] and not self.row.appended:
                sys.exit(f"{self.row.title}: {window['different']} answers were not like the first one")
            of_process = probe in (WHOLE, ECHO)
            return window["requests"], cpu_ns(server.pid) if of_process else float(ask(server, "read"))

        try:
            answer(stdout)
            time.sleep(WARM_UP_S)
            _, before_ns = mark()
            requests = 0
            while requests < LEAST_REQUESTS:  # the machine may have been busy with something else
                time.sleep(self.seconds)
                more, after_ns = mark()
                requests += more
        finally:
            close(stdin)
            generator.wait(PATIENCE_S)
            close(stdout)
        if probe != ECHO:
            self.requests += requests
        return (after_ns - before_ns) / 1000 / requests


@contextmanager
def recorder_of(server: Server) -> Iterator[Recorder]:
    """A connection on which requests are prepared and checked."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as connection:
        yield Recorder(connection)


def check_appended(load: Load, server: Server) -> None:
    """Check that the log has the records of all requests that were counted.

    Raises:
        SystemExit: It has not: requests were refused.
    """
    with recorder_of(server) as recorder:
        end = base_offset(recorder, load.frames.read_bytes())
    if end < load.requests * load.row.appended:
        sys.exit(f"{load.row.title}: {end} records are in the log after {load.requests} requests")


@contextmanager
def prepared(row: Row, seconds: float) -> Iterator[tuple[Load, dict[str, Server]]]:
    """Start the servers of a row, and record its requests."""
    server_core, load_core = cores()
    host = [sys.executable, "-m", "bench.stages_host"]
    with tempfile.TemporaryDirectory() as folder, running([*host, *row.host], core=server_core) as server:
        with recorder_of(server) as recorder:
            found = row.record(recorder, row.connections)
        frames, reply = Path(folder, "frames"), Path(folder, "answer")
        frames.write_bytes(b"".join(found.frames))
        reply.write_bytes(found.answer)
        large = ["--large"] if len(found.frames[0]) > 1 << 16 else []
        load = Load(row=row, frames=frames, answer_bytes=len(found.answer), core=load_core, seconds=seconds)
        with running([*host, "--echo", reply, *large], core=server_core) as echo:
            yield load, {ECHO: echo, WHOLE: server}


def run(row: Row, rounds: int, seconds: float) -> Windows:
    """The windows of all rounds but the first one, microseconds of CPU per request."""
    found: dict[str, list[float]] = {}
    with prepared(row, seconds) as (load, servers):
        for number in range(rounds + 1):
            for name in found if number else WINDOWS:
                us = load.window_us(servers.get(name, servers[WHOLE]), name)
                if number:
                    found[name].append(us)
                elif us:
                    found[name] = []
        if row.appended:
            check_appended(load, servers[WHOLE])
    return found


def stages_of(windows: Windows) -> dict[str, Cost]:
    """The stages that a request passes."""
    found = {}
    for name, sums in STAGES.items():
        costs = [(sign, Cost.of(windows[probe])) for probe, sign in sums.items() if probe in windows]
        if any(sign > 0 for sign, _ in costs):
            found[name] = Cost.total(costs)
    return found


def verdict_of(windows: Windows) -> str:
    """Whether the stages of a row add up to the whole."""
    net = Counter[str]()
    for sums in STAGES.values():
        net.update(sums)
    total = Cost.total([(net[probe], Cost.of(windows[probe])) for probe in net if probe in windows])
    whole = Cost.of(windows[WHOLE])
    most = TOLERANCE * whole.us
    if math.hypot(total.noise_us, whole.noise_us) > most:
        return "not measured: the machine was too busy"
    return "the stages add up to the whole" if abs(total.us - whole.us) <= most else FAILED


def report(results: Mapping[str, Windows]) -> bool:
    """Print the table; return whether the stages of all rows add up to the whole."""
    wholes = {name: Cost.of(windows[WHOLE]) for name, windows in results.items()}
    stages = {name: stages_of(windows) for name, windows in results.items()}
    sums = {name: sum(cost.us for cost in of.values()) for name, of in stages.items()}
    lines = {stage: [str(stages[name].get(stage, "")) for name in results] for stage in STAGES}
    lines["sum of the stages"] = [f"{us:.1f}" for us in sums.values()]
    lines["whole"] = [str(each) for each in wholes.values()]
    for name in results:
        print(f"{name}: {ROWS[name].title}")
    print(f"\n| µs of CPU per request | {' | '.join(results)} |\n|---|{'---|' * len(results)}")
    for stage, figures in lines.items():
        print(f"| {stage} | {' | '.join(figures)} |")
    print()
    verdicts = {name: verdict_of(windows) for name, windows in results.items()}
    for name, text in verdicts.items():
        print(f"{name}: {text}")
    return FAILED not in verdicts.values()


def arguments_of(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", choices=ROWS, action="append", help="only this row; may be repeated")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one window")
    parser.add_argument("--json", action="store_true", help="all windows as JSON instead of a table")
    return parser.parse_args(argv)


def main() -> None:
    arguments = arguments_of(sys.argv[1:])
    print(head("stages"), file=sys.stderr)
    try:
        build("replay")
        rows = {name: ROWS[name] for name in arguments.row or ROWS}
        results = {name: run(row, arguments.rounds, arguments.seconds) for name, row in rows.items()}
    except UnavailableError as reason:
        sys.exit(f"skipped: {reason}")
    if arguments.json:
        print(json.dumps(results, indent=1))
    elif not report(results):
        sys.exit("the stages do not add up")


if __name__ == "__main__":
    main()
