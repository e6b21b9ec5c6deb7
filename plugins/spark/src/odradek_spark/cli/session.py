"""The Spark session of a command: on this machine, on a cluster, of ``spark-submit``, of Spark Connect."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from deltalake.exceptions import DeltaError

from odradek_spark.cli.options import adding, setting_option
from odradek_spark.conditions import Condition, without_condition
from odradek_spark.ingest.failures import IngestFailed, explain
from odradek_spark.jobs.rules import RuleError
from odradek_tables.dataset import DatasetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final[Mapping[str, str]] = {
    "spark.log.level": "FATAL",  # a command says its errors itself, each in a line
    "spark.scheduler.mode": "FAIR",  # long jobs and ingest share the cores
    # rollups have sketches, which Spark would sort all points for beyond 128 groups
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.session.timeZone": "UTC",  # as the tables' times
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Where ``--conf`` has nothing else."""
LOOPBACK: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""For a driver whose workers are on this machine."""

WORKERS: Final = Path(__file__).parents[1] / "workers"
"""First on the path of Python processes that Spark starts on this machine."""


class NoSpark(Exception):
    """Spark cannot run here; the message says what to do."""


EXPECTED: Final = (NoSpark, DatasetError, Condition, RuleError, IngestFailed, DeltaError, OSError)
"""Errors that the user can fix; the message suffices, without a traceback."""


conf_option = click.option(
    "--conf",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of Spark; spark.remote=sc://HOST:PORT for Spark Connect. May be repeated.",
)
session_options = adding(setting_option("master"), conf_option)


@contextmanager
def session(master: str, conf: tuple[str, ...]) -> Iterator[SparkSession]:
    """A session for the duration of a command.

    Raises:
        click.ClickException: The session did not start, or the command failed; the message explains it.
    """
    with explained():
        spark = opened(master, settings(conf))
        try:
            yield spark
        finally:
            with suppress(Exception):  # Spark may have ended
                spark.stop()


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors that the user can fix into one line."""
    try:
        yield
    except EXPECTED as error:
        raise click.ClickException(without_condition(str(error))) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("py4j", "pyspark"):  # perhaps nothing imports them
            raise click.ClickException(explain(error).message) from error
        raise


def opened(master: str, given: Mapping[str, str]) -> SparkSession:
    values = dict(SETTINGS)
    use_installed_pyspark()
    if "spark.remote" not in given and "PYSPARK_GATEWAY_PORT" not in os.environ:  # set by spark-submit
        check_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        values["spark.master"] = master
        if master.startswith("local"):
            values |= LOOPBACK
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else Spark looks up this machine
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("odradek")
    for key, value in {**values, **given}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def use_installed_pyspark() -> None:
    """Let the Python processes of Spark start in a quarter of the time: `workers/sitecustomize.py`."""
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = dict.fromkeys([str(WORKERS), *filter(None, before)])
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def check_java() -> None:
    """Look for Java before Spark does, whose error does not name it."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which(f"{home}/bin/java" if home else "java") is None:
        raise NoSpark("no Java found: the pipeline needs Java 17 or newer. Install it, or correct JAVA_HOME")


def settings(conf: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in conf:
        key, sign, value = each.partition("=")
        if not sign or not key:
            raise click.UsageError(f"option --conf: expected KEY=VALUE, found {each!r}")
        found[key] = value
    return found
