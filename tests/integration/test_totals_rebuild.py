"""A host whose totals are damaged: it starts without the destination, and rebuilds them from its log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.temporality.rebuild import begin_again
from support.delta_pushes import push_delta
from support.hosts import EVERYTHING, running_host
from support.otlp_collector import Collector, collecting
from support.totals_collector import NewestTotals
from support.waiting import wait_until

PATIENCE_S = 60


def test_damaged_totals_are_built_again_from_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    totals, newest = tmp_path / "totals.db", NewestTotals()

    def settings(collector: Collector) -> tuple[str, ...]:
        return (
            *EVERYTHING,
            f"plugins.otlp.endpoint={collector.url}",
            "plugins.otlp.temporality=cumulative",
            f"plugins.otlp.totals.file={totals}",
            "plugins.otlp.batch.max.age.ms=20",
        )

    def total() -> float | None:
        return newest.totals.get(("c", ""))

    with collecting() as collector:
        collector.mood = newest
        with running_host(tmp_path / "data", *settings(collector)) as host:
            push_delta(host.bootstrap, 5, 0)
            wait_until(lambda: total() == 5, total, PATIENCE_S)

        totals.write_bytes(b"no database" * 1_000)
        with caplog.at_level(logging.ERROR), running_host(tmp_path / "data", *settings(collector)) as host:
            push_delta(host.bootstrap, 3, 60)
            wait_until(lambda: "failed in start" in caplog.text, "the error", PATIENCE_S)
        problems = [str(each.exc_info[1]) for each in caplog.records if each.exc_info]
        before = total()

        begin_again(totals)
        newest.totals.clear()
        with running_host(tmp_path / "data", *settings(collector)) as host:
            push_delta(host.bootstrap, 2, 120)
            wait_until(lambda: total() == 10, total, PATIENCE_S)

    assert before == 5
    assert len(problems) == 1
    assert f"`odradek totals rebuild {totals}`" in problems[0]
