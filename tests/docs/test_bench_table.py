"""``python -m bench`` compares in one table; what was not measured never counts as reached."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as table
from bench.comparison import Comparison, Goal, compared, figure
from bench.generator import measure
from bench.growth import Growth
from bench.harness import SKIPPED, UnavailableError, cpu_ns, running, verdict
from bench.others import Others, ticks_of

OURS, PEER = "odradek", "a peer"


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (1.0, "reached"),
        (2.0, "reached"),
        (2.1, "MISSED"),
        (0.0, "not measured"),
        (-119.0, "not measured"),
        (math.nan, "not measured"),
        (math.inf, "not measured"),
    ],
)
def test_only_a_measured_cost_reaches_a_goal(cost: float, expected: str) -> None:
    assert verdict(cost, 2.0) == expected


def test_a_goal_may_have_a_lower_bound() -> None:
    assert [verdict(ratio, math.inf, least=1.7) for ratio in (1.6, 1.7)] == ["MISSED", "reached"]


@pytest.mark.parametrize("theirs", [0.0, -1.0, math.nan])
def test_a_ratio_to_nothing_is_not_measured(theirs: float) -> None:
    line = Comparison(row="r", unit="B", ours=1.0, peer=PEER, theirs=theirs, goal=Goal(peer=PEER, most=2))

    assert line.verdict == "not measured"
    assert line.is_open


def test_each_of_ours_is_compared_with_each_peer_and_with_its_own_goal() -> None:
    costs = {"C": 2.0, OURS: 5.0, "odradek, other": 8.0}
    goals = [Goal(most=4.0), Goal(peer="C", most=2.5), Goal(peer="absent", most=1.0)]

    lines = list(compared("push", "µs", costs, (OURS, "odradek, other"), goals))

    assert [line.cells for line in lines] == [
        ("push", "5.00 µs", "", "", "≤ 4 µs", "MISSED"),
        ("push", "5.00 µs", "C: 2.00 µs", "2.50", "≤ 2.5", "reached"),
        ("push, other", "8.00 µs", "C: 2.00 µs", "4.00", "", ""),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(0.00537, "0.00537"), (13.51, "13.5"), (104_857.6, "104,858"), (-1.0, "not measured")]
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_process_that_shrinks_has_no_cost_of_one_thing() -> None:
    assert math.isnan(Growth(count=8, sizes=[900, 800, 850]).each)


def test_cpu_time_includes_threads_that_have_ended() -> None:
    spin = "import sys, threading, time\ndef spin():\n while time.thread_time() < 0.1: pass\n"
    threads = "for _ in range(2):\n t = threading.Thread(target=spin); t.start(); t.join()\n"
    server = [sys.executable, "-c", f"{spin}{threads}print('ready port=1', flush=True); sys.stdin.read()"]

    with running(server) as process:
        assert cpu_ns(process.pid) > 200e6


class Silent:
    """A load generator that gets no answer from its server."""

    def command(self, port: int) -> list[str | Path]:
        window = '{"requests": 0, "throttled": 0, "errors": {}, "seconds": 1, "p50_us": 0, "p99_us": 0}'
        return ["sh", "-c", f"echo ready; while read mark; do echo '{window}'; done"]


def test_an_empty_window_ends_the_bench() -> None:
    with running(["sh", "-c", "echo ready port=1; read line"]) as server, pytest.raises(SystemExit):
        measure(server, Silent(), seconds=0.01)


def test_an_ended_child_is_not_another_program() -> None:
    before = ticks_of(os.getpid())
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)

    assert (ticks_of(os.getpid()) - before) / os.sysconf("SC_CLK_TCK") > 0.25


def test_the_load_of_others_is_a_mean_of_a_second_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, busy = iter((0.0, 2.0, 2.5, 4.0)), iter((10.0, 11.0, 14.0))
    monkeypatch.setattr("bench.others.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr("bench.others.busy_s", lambda: next(busy))
    others = Others()

    assert [others.cores() for _ in range(3)] == [0.5, 0.5, 1.5]


def lines_of(*costs: float) -> Iterator[Comparison]:
    yield from (Comparison(row="push", unit="µs", ours=cost, goal=Goal(most=2)) for cost in costs)


@pytest.mark.parametrize(("cost", "status"), [(1.0, 0), (3.0, 1), (math.nan, 1)])
def test_the_exit_status_tells_whether_all_goals_are_reached(
    cost: float, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table, "BENCHES", {"push": lambda rounds: lines_of(1.0, cost)})

    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")

    assert table.main(["--rounds", "1"]) == status
    assert capsys.readouterr().out.count("| push |") == 2


def test_a_bench_that_fails_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(rounds: int) -> Iterator[Comparison]:
        raise SystemExit("pushes were refused")

    def unavailable(rounds: int) -> Iterator[Comparison]:
        raise UnavailableError("no gcc")

    monkeypatch.setattr(table, "BENCHES", {"a": refused, "b": unavailable, "c": lambda rounds: lines_of(1)})
    found = table.Table()
    for name in "abc":
        found.add(name, 1)

    assert not found.is_complete
    assert "* a: failed, SystemExit: pushes were refused" in str(found)
    assert "* b: skipped, no gcc" in str(found)
    assert "| push |" in str(found)
    SKIPPED.remove("b: skipped, no gcc")


def test_a_new_table_replaces_the_old_one_and_nothing_else() -> None:
    page = f"before\n{table.BEGIN}old\n{table.END}after\n"

    assert table.replaced(page, "| new |") == f"before\n{table.BEGIN}\n| new |\n\n{table.END}after\n"
    with pytest.raises(SystemExit, match="markers"):
        table.replaced("no markers", "| new |")


def unexplained(page: str) -> list[str]:
    """The rows of the published table that miss a goal without a reason in the section below it."""
    published = page.partition(table.BEGIN)[2].partition(table.END)[0]
    reasons = page.partition("\n## Goals that are missed\n")[2].partition("\n## ")[0]
    lines = [line for line in published.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert {len(row) for row in cells} <= {7}
    missed = dict.fromkeys(row[0] for row in cells if row[5] in ("MISSED", "not measured"))
    text = " ".join(reasons.split())
    return [row for row in missed if f"**{row}**" not in text]


def test_what_has_no_reason() -> None:
    slow = Comparison(row="push, small", unit="µs", ours=9.0, goal=Goal(most=8))
    found = table.Table(lines=[(slow, 0.0), (replace(slow, row="push, java"), 0.0)])
    page = table.replaced(
        f"{table.BEGIN}{table.END}\n## Goals that are missed\n\n**push, java**: why\n", str(found)
    )

    assert unexplained(page) == ["push, small"]


def test_every_missed_goal_of_the_published_table_has_its_reason() -> None:
    assert unexplained(table.README.read_text(encoding="utf-8")) == []
