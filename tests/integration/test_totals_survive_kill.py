"""Sudden deaths of a process that delivers totals: no increment is lost or doubled, and no total goes back.

Only a real death shows what a file holds at that moment.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from integration.totals_program import CLIENTS, increment
from support.child_process import same_imports
from support.delta_pushes import push_delta
from support.hosts import EVERYTHING, serving
from support.otlp_collector import Collector, busy, collecting
from support.remote_write_receiver import StoringReceiver
from support.totals_collector import NewestTotals
from support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.ci

LIVES = 8
LONGEST_S = 0.08
"""A fraction of the time that the whole log takes."""
RECORDS = 1_500
TESTS = Path(__file__).parents[1]


def lived(folder: Path, life_s: float) -> int:
    """The exit status of a process after its life."""
    environment = same_imports()
    command = [sys.executable, "-m", "integration.totals_program", str(folder), str(RECORDS), str(life_s)]
    return subprocess.run(command, cwd=TESTS, env=environment, timeout=100, check=False).returncode


def delivered(folder: Path) -> list[tuple[int, float]]:
    """Client and total of each delivered record."""
    pairs = [line.split() for line in (folder / "delivered").read_text().splitlines()]
    return [(int(client), float(total)) for client, total in pairs]


def test_totals_after_sudden_deaths_are_the_sums_of_the_log(tmp_path: Path) -> None:
    chance = random.Random(7)

    ends = [lived(tmp_path, chance.uniform(0.005, LONGEST_S)) for _ in range(LIVES)]
    last = lived(tmp_path, 0)

    found = delivered(tmp_path)
    assert (ends[0], last) == (-signal.SIGALRM, 0)
    for client in range(CLIENTS):
        totals = [total for each, total in found if each == client]
        assert totals == sorted(totals)
        assert totals[-1] == sum(increment(offset) for offset in range(client, RECORDS, CLIENTS))


@pytest.mark.slow
def test_a_killed_host_continues_its_totals(tmp_path: Path) -> None:
    accepting = NewestTotals()

    def life(collector: Collector, number: int, wanted: float | None) -> None:
        """Push a number and kill the host: once the collector has that total, or has refused it."""
        collector.mood = busy if wanted is None else accepting
        asked = collector.asked
        with serving(tmp_path / "data", *arguments(collector, tmp_path / "totals.db")) as serve:
            push_delta(serve.bootstrap, float(number), 60 * number, patience_s=PATIENCE_S)
            wait_until(lambda: collector.asked > asked, "a request to the collector")
            if wanted is not None:
                totals = {("c", ""): wanted}
                wait_until(lambda: not accepting.differences(totals), lambda: accepting.totals)
            serve.kill()

    with collecting() as collector:
        for number, wanted in enumerate((None, 3, None, 10), start=1):
            life(collector, number, wanted)

    assert accepting.fallen == []


@pytest.mark.slow
def test_a_killed_host_continues_the_series_of_remote_write(tmp_path: Path) -> None:
    accepting = StoringReceiver()

    def life(collector: Collector, number: int, is_up: bool) -> None:
        """Push a number and kill the host: at once, or when the receiver has the total."""
        collector.mood = accepting if is_up else busy
        asked = collector.asked
        with serving(tmp_path / "data", *remote_write(collector, tmp_path / "totals.db")) as serve:
            push_delta(serve.bootstrap, float(number), 60 * number, patience_s=PATIENCE_S)
            if is_up:
                total = float(sum(range(1, number + 1)))
                wait_until(lambda: total in values(accepting), lambda: accepting.samples)
            else:
                wait_until(lambda: collector.asked > asked, "a request to the receiver")
            serve.kill()

    with collecting() as collector:
        for number, is_up in enumerate((False, True, True), start=1):
            life(collector, number, is_up)

    found = values(accepting)
    assert found == sorted(found)
    assert found[-1] == 6.0


def values(receiver: StoringReceiver) -> list[float]:
    """The totals of the only client, in the order of their times."""
    return [row.value for row in receiver.series("c_total") if row.value is not None]


def remote_write(collector: Collector, totals: Path) -> list[str]:
    return [
        part
        for setting in (
            *EVERYTHING,
            f"plugins.prometheus.remote_write.url={collector.url}/api/v1/write",
            f"plugins.prometheus.remote_write.totals.file={totals}",
            "plugins.prometheus.batch.max.age.ms=20",
            "plugins.prometheus.retry.backoff.ms=50",
            "plugins.prometheus.retry.backoff.max.ms=100",
        )
        for part in ("--set", setting)
    ]


def arguments(collector: Collector, totals: Path) -> list[str]:
    settings = (
        *EVERYTHING,
        f"plugins.otlp.endpoint={collector.url}",
        "plugins.otlp.temporality=cumulative",
        f"plugins.otlp.totals.file={totals}",
        "plugins.otlp.batch.max.age.ms=20",
        "plugins.otlp.retry.backoff.ms=50",
        "plugins.otlp.retry.backoff.max.ms=100",
    )
    return [part for setting in settings for part in ("--set", setting)]
