"""The Spark session of a command: on this machine, of ``spark-submit``, or on a Spark Connect server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click
from deltalake.exceptions import DeltaError

from odradek_spark.conditions import without_condition
from odradek_spark.ingest.failures import explain
from odradek_spark.ingest.session import (
    NoSpark,
    archive_path,
    is_submitted,
    local_session,
    remote_session,
    submitted_session,
)
from odradek_spark.jobs.rules import RuleError
from odradek_spark.source.options import OptionError
from odradek_spark.source.topic import TopicError
from odradek_spark.tables.dataset import DatasetError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])
EXPECTED = (NoSpark, DatasetError, TopicError, OptionError, RuleError, DeltaError, OSError)
"""Errors that the user can fix; the message suffices, without a traceback."""


def session_options(command: Command) -> Command:
    """Add the options of the Spark session."""
    options = (
        click.option(
            "--master",
            metavar="MASTER",
            default="local[*]",
            show_default=True,
            help="Master of Spark: local[CORES], spark://HOST:PORT, yarn, k8s://...",
        ),
        click.option("--remote", metavar="sc://HOST:PORT", help="A Spark Connect server, replaces --master."),
        click.option(
            "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark. May be repeated."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def session(master: str, remote: str | None, conf: tuple[str, ...]) -> Iterator[SparkSession]:
    """A session for the duration of a command.

    Raises:
        click.ClickException: The session did not start, or the command failed; the message explains it.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    with explained():
        spark = opened(master, remote, settings(conf))
        try:
            yield spark
        except PySparkException as error:
            raise click.ClickException(explain(error).message) from error
        finally:
            with suppress(Py4JError, OSError):
                spark.stop()


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors that the user can fix into one line."""
    try:
        yield
    except EXPECTED as error:
        raise click.ClickException(without_condition(str(error))) from error


def opened(master: str, remote: str | None, found: dict[str, str]) -> SparkSession:
    """Open the session that the options describe."""
    if remote is not None:
        return remote_session(remote, settings=found)
    if is_submitted():
        return submitted_session(settings=found)
    return local_session(master=master, settings=found, archive=archive_path())


def settings(conf: tuple[str, ...]) -> dict[str, str]:
    """Parse settings of the form ``KEY=VALUE``.

    Raises:
        click.UsageError: A setting is malformed.
    """
    found = {}
    for each in conf:
        key, sign, value = each.partition("=")
        if not sign or not key:
            raise click.UsageError(f"option --conf: expected KEY=VALUE, found {each!r}")
        found[key] = value
    return found
