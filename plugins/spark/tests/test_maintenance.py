from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from odradek_spark.cli.ingest import stop_on_signals
from odradek_spark.cli.maintenance import Due, Maintenance
from odradek_spark.cli.options import kept_days
from odradek_spark.pipeline_settings import PipelineSettings
from odradek_tables.dataset import DatasetError

NO_SESSION: Any = None


def pipeline(root: Path, **more: Any) -> PipelineSettings:
    return PipelineSettings(dataset=str(root), maintenance_interval_ms=10_000, **more)


class Scripted:
    """Maintenance with jobs that record their runs, on a manual clock."""

    def __init__(self, tmp_path: Path) -> None:
        self.now_s = 0.0
        self.ran: list[str] = []
        self.said: list[str] = []
        self.maintenance = Maintenance(pipeline(tmp_path), clock=lambda: self.now_s)

    def job(self, name: str, every_s: float, error: Exception | None = None, takes_s: float = 0.0) -> None:
        def work(_: object) -> str:
            self.ran.append(name)
            self.now_s += takes_s
            if error is not None:
                raise error
            return f"{name} done"

        self.maintenance.due.append(Due(name, every_s, work, self.now_s + every_s))

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        self.maintenance.run_due(NO_SESSION, self.said.append)


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    made = Scripted(tmp_path)
    made.maintenance.due.clear()
    return made


def test_a_job_runs_only_when_it_is_due(scripted: Scripted) -> None:
    scripted.job("often", 10.0)
    scripted.job("seldom", 25.0)

    for _ in range(6):
        scripted.pass_time(5.0)

    assert scripted.ran == ["often", "often", "seldom", "often"]


def test_all_jobs_run_once_from_cron(scripted: Scripted) -> None:
    scripted.job("often", 10.0)
    scripted.job("seldom", 3_600.0)

    scripted.maintenance.run_all(NO_SESSION, scripted.said.append, threading.Event())

    assert scripted.said == ["often done", "seldom done"]


def test_a_job_that_takes_long_runs_a_quarter_of_the_time(scripted: Scripted) -> None:
    scripted.job("long", 10.0, takes_s=20.0)

    for _ in range(20):
        scripted.pass_time(5.0)

    assert scripted.ran == ["long"] * 2
    assert scripted.now_s == 140.0


@pytest.mark.parametrize(
    "error",
    [
        DatasetError("no such table\nat all"),
        DeltaError("no such table"),
        PySparkException(
            "[TASK] failed\nTraceback (most recent call last):\n"
            "odradek_tables.dataset.DatasetError: no such table"
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_job_is_reported_and_runs_again(scripted: Scripted, error: Exception) -> None:
    scripted.job("bad", 10.0, error)
    scripted.job("good", 10.0)

    scripted.pass_time(10.0)
    scripted.pass_time(10.0)

    assert scripted.ran == ["bad", "good"] * 2
    assert scripted.said == ["bad failed: no such table", "good done"] * 2


class Interruptible:
    """A session whose jobs last until they are interrupted."""

    def __init__(self) -> None:
        self.began, self.interrupted = threading.Event(), threading.Event()

    def long_job(self, _: object) -> str:
        self.began.set()
        self.interrupted.wait(30)
        raise PySparkException("[JOB_CANCELLED] it was interrupted")

    def interruptAll(self) -> None:  # noqa: N802  Spark's name
        self.interrupted.set()


def test_a_long_job_delays_neither_ingest_nor_the_end(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek_spark.cli.maintenance.POLL_S", 0.01)
    session: Any = Interruptible()
    stop = threading.Event()
    scripted.maintenance.due.append(Due("long", 10.0, session.long_job, 0.0))
    scripted.job("next", 0.0)

    with scripted.maintenance.beside(session, scripted.said.append, stop):
        began = session.began.wait(10)
        is_there = "maintenance" in {thread.name for thread in threading.enumerate()}

    assert began
    assert is_there
    assert stop.is_set()
    assert "maintenance" not in {thread.name for thread in threading.enumerate()}
    assert scripted.said == []  # the interruption is not reported
    assert scripted.ran == []


def test_without_rules_detection_does_not_run(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nid = "r"\nmetric = "m"\nop = ">"\nthreshold = 1\n')
    always = ["rollup", "inventory", "compact", "expire", "vacuum"]

    def names(rules_file: Path | None, **options: Any) -> list[str]:
        return [each.name for each in Maintenance(pipeline(tmp_path, rules_file=rules_file, **options)).due]

    assert names(None) == [*always, "detect"]
    assert names(None, default_rules=False) == always
    assert names(rules, default_rules=False) == [*always, "detect"]


def test_retention_is_set_by_table() -> None:
    found = kept_days(["points=3"])

    assert (found["points"], found["rollup_5m"]) == (3, 30)


@pytest.mark.parametrize("text", ["points", "points=x", "client=1", "=3"])
def test_retention_of_an_unknown_table_is_refused(text: str) -> None:
    with pytest.raises(Exception, match="expected TABLE=DAYS"):
        kept_days([text])


def test_a_signal_stops_it_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    import signal

    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        stop_on_signals(stop)
        signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert stop.is_set()
    assert capsys.readouterr().err == "stopping; waiting for the running batch and job, and for Spark\n"
