"""What ``odradek spark run`` does beside ingest, in the same session: jobs, one by one, when they are due."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from deltalake.exceptions import DeltaError

from odradek_spark.cli import reports
from odradek_spark.cli.options import kept_days, retention_option
from odradek_spark.ingest.failures import explain
from odradek_spark.ingest.session import in_pool
from odradek_spark.jobs.expire import VACUUM_HOURS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])
Job = Callable[["SparkSession"], "str | None"]
POLL_S = 1.0
STOP_S = 10.0
"""So long a job that is interrupted may take to notice; then the session ends, which it notices."""
MINUTE_S = 60.0
HOUR_S = 3600.0


def maintenance_options(command: Command) -> Command:
    """Add the options that say which jobs run, and how often."""
    options = (
        click.option(
            "--rules-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="TOML: what is an anomaly; without it none is looked for.",
        ),
        click.option(
            "--maintenance-interval-s",
            metavar="SECONDS",
            type=click.FloatRange(1.0),
            default=5 * MINUTE_S,
            show_default=True,
            help="How often rollups and inventory are brought up to date, and closed hours compacted.",
        ),
        retention_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(slots=True)
class Due:
    """A job and when it runs next, in seconds of the monotonic clock."""

    name: str
    every_s: float
    job: Job
    at_s: float


class Maintenance:
    """The jobs of one dataset."""

    def __init__(
        self,
        dataset: str,
        rules_file: Path | None,
        maintenance_interval_s: float,
        retention_days: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        every_s = maintenance_interval_s
        days = kept_days(retention_days)
        jobs: list[tuple[str, float, Job]] = [
            ("rollup", every_s, lambda spark: reports.rolled_up(spark, dataset)),
            ("inventory", every_s, lambda spark: reports.inventoried(spark, dataset)),
            ("compact", every_s, lambda spark: reports.compacted(spark, dataset)),
            ("expire", HOUR_S, lambda _: reports.expired(dataset, days)),
            ("vacuum", HOUR_S, lambda _: reports.vacuumed(dataset, VACUUM_HOURS)),
        ]
        if rules_file is not None:
            rules = reports.read_rules(rules_file)
            often_s = min(MINUTE_S, every_s)
            jobs.append(("detect", often_s, lambda spark: reports.detected(spark, dataset, rules)))
        self.due = [Due(name, after_s, job, clock() + after_s) for name, after_s, job in jobs]

    @contextmanager
    def beside(
        self, spark: SparkSession, say: Callable[[str], object], stop: threading.Event
    ) -> Iterator[None]:
        """Run what is due, in a thread and a pool of Spark's scheduler of its own.

        A long job holds up neither ingest nor the end: ``stop`` is set at the end of ``with``, and a job that
        runs then is interrupted.
        """

        def follow() -> None:
            in_pool(spark, "maintenance")
            while not stop.wait(POLL_S):
                self.run_due(spark, say, stop)

        # no daemon: a thread that is still in Arrow or Delta when Python goes away takes the process down
        thread = threading.Thread(target=follow, name="maintenance")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            spark.interruptAll()
            thread.join(STOP_S)

    def run_due(
        self, spark: SparkSession, say: Callable[[str], object], stop: threading.Event | None = None
    ) -> None:
        """Run what is due. A job that fails is said, and is due again later; it stops neither ingest nor the
        other jobs. Once ``stop`` is set no job begins, and what becomes of the one that runs is not said.
        """
        stopped = threading.Event() if stop is None else stop
        for each in self.due:
            if each.at_s <= self.clock() and not stopped.is_set():
                line = attempted(each, spark)
                each.at_s = self.clock() + each.every_s
                if line is not None and not stopped.is_set():
                    say(line)


def attempted(due: Due, spark: SparkSession) -> str | None:
    """What a job did, or why it did not."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from odradek_spark.tables.dataset import DatasetError

    try:
        return due.job(spark)
    except (PySparkException, Py4JError) as error:
        return f"{due.name} failed: {explain(error).message}"
    except (DatasetError, DeltaError, OSError) as error:
        return f"{due.name} failed: {str(error).splitlines()[0]}"
