"""The jobs that ``odradek spark run`` runs beside ingest, in the same session, one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from odradek_spark.cli.options import rules
from odradek_spark.ingest.failures import explain
from odradek_spark.pipeline_settings import PipelineSettings
from odradek_tables.dataset import DatasetError
from odradek_tables.levels import Levels
from odradek_tables.retention import KEPT_DAYS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Job = Callable[["SparkSession"], "str | None"]
POLL_S = 1.0
STOP_S = 10.0
"""Seconds that an interrupted job has to stop. After them the session ends, which stops the job."""
MINUTE_S = 60.0
MS_PER_S = 1000
PAUSE = 3
"""Pause after a run, in durations of the run: detection in a large fleet must not take all cores."""
HOUR_S = 3600.0


@dataclass(slots=True)
class Due:
    """A job and the time of its next run, in seconds of the monotonic clock."""

    name: str
    every_s: float
    job: Job
    at_s: float


class Maintenance:
    """The jobs of one dataset."""

    def __init__(
        self,
        settings: PipelineSettings,
        days: Mapping[str, int] = KEPT_DAYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from odradek_spark.cli import reports

        self.clock = clock
        dataset, every_s = settings.dataset, settings.maintenance_interval_ms / MS_PER_S
        kept = Levels(tuple(settings.rollup_client_metrics), tuple(settings.rollup_fleet_labels))
        jobs: list[tuple[str, float, Job]] = [
            ("rollup", every_s, lambda spark: reports.rolled_up(spark, dataset, kept)),
            ("inventory", every_s, lambda spark: reports.inventoried(spark, dataset)),
            ("compact", every_s, lambda spark: reports.compacted(spark, dataset)),
            ("expire", HOUR_S, lambda _: reports.expired(dataset, days)),
            ("vacuum", HOUR_S, lambda _: reports.vacuumed(dataset)),
        ]
        often_s = min(MINUTE_S, every_s)
        wanted = rules(settings.rules_file, default_rules=settings.default_rules)
        if wanted:
            jobs.append(("detect", often_s, lambda spark: reports.detected(spark, dataset, wanted)))
        self.due = [Due(name, after_s, job, clock() + after_s) for name, after_s, job in jobs]

    @contextmanager
    def beside(
        self, spark: SparkSession, say: Callable[[str], object], stop: threading.Event
    ) -> Iterator[None]:
        """Run due jobs in a thread and a Spark scheduler pool of their own.

        A long job delays neither ingest nor shutdown: at the end of ``with``, ``stop`` is set and the running
        job is interrupted.
        """

        def follow() -> None:
            with suppress(AttributeError):  # Spark Connect has no context
                spark.sparkContext.setLocalProperty("spark.scheduler.pool", "maintenance")
            while not stop.wait(POLL_S):
                self.run_due(spark, say, stop)

        # Not a daemon: a thread that is inside Arrow or Delta when Python exits crashes the process.
        thread = threading.Thread(target=follow, name="maintenance")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            with suppress(Exception):  # Spark may have ended
                spark.interruptAll()
            thread.join(STOP_S)

    def run_all(self, spark: SparkSession, say: Callable[[str], object], stop: threading.Event) -> None:
        """Run every job, as if it were due."""
        for each in self.due:
            each.at_s = self.clock()
        self.run_due(spark, say, stop)

    def run_due(
        self, spark: SparkSession, say: Callable[[str], object], stop: threading.Event | None = None
    ) -> None:
        """Run due jobs.

        A failed job is reported and runs again at its next time. A job that takes long runs at most a quarter
        of the time. Once ``stop`` is set, no job begins, and the running one is not reported.
        """
        stopped = threading.Event() if stop is None else stop
        for each in self.due:
            if each.at_s <= self.clock() and not stopped.is_set():
                begin_s = self.clock()
                line = attempted(each, spark)
                took_s = self.clock() - begin_s
                each.at_s = self.clock() + max(each.every_s, PAUSE * took_s)
                if line is not None and not stopped.is_set():
                    say(line)


def attempted(due: Due, spark: SparkSession) -> str | None:
    """Run a job; return a line about its outcome or its failure, or None if it had nothing to do."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return due.job(spark)
    except (PySparkException, Py4JError) as error:
        return f"{due.name} failed: {explain(error).message}"
    except (DatasetError, DeltaError, OSError) as error:
        return f"{due.name} failed: {str(error).splitlines()[0]}"
