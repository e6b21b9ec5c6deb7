"""Continuous ingest: it waits if a store is full or a broker unreachable, and tries again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from odradek_spark.conditions import without_condition
from odradek_spark.ingest.failures import Failure, IngestFailed, explain
from odradek_spark.ingest.query import start_ingest
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.source.topic import TopicError, Unreachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Watch = Callable[["StreamingQuery"], object]
BACKOFF_S = 1.0
BACKOFF_MAX_S = 60.0
ATTEMPTS_ONCE = 4
"""Attempts without progress after which ``once`` gives up."""
POLL_S = 1


def run_ingest(
    spark: SparkSession,
    settings: IngestSettings,
    *,
    once: bool,
    stop: threading.Event | None = None,
    say: Callable[[str], object] = print,
    watch: Watch = lambda query: None,
) -> None:
    """Ingest until nothing is left, or until it is stopped.

    Args:
        spark: The session.
        settings: The source, the destination and the size of batches.
        once: Return once everything that was in the topic at the start is in the tables.
        stop: Set it to stop; the next run completes an unfinished batch.
        say: Called with a line whenever ingest has to wait.
        watch: Called every second with the query, to show the progress.

    Raises:
        IngestFailed: Ingest failed, and a retry cannot help; with ``once`` also if retries did not help.
        DatasetError: The dataset is not writable.
        OptionError: An option is invalid.
    """
    stopped = stop or threading.Event()
    failures = 0
    while not stopped.is_set():
        query, failure = attempt(spark, settings, once, stopped, watch)
        if failure is None or stopped.is_set():
            return
        failures = 1 if advanced(query) else failures + 1
        if not failure.is_passing or (once and failures >= ATTEMPTS_ONCE):
            raise IngestFailed(failure.message)
        wait_s = min(BACKOFF_S * 2 ** (failures - 1), BACKOFF_MAX_S)
        say(f"{failure.message}; trying again in {wait_s:g} s")
        stopped.wait(wait_s)


def attempt(
    spark: SparkSession, settings: IngestSettings, once: bool, stopped: threading.Event, watch: Watch
) -> tuple[StreamingQuery | None, Failure | None]:
    """Run one query; return it, and the reason if it failed."""
    query = None
    try:
        query = start_ingest(spark, settings, once=once)
        while not query.awaitTermination(POLL_S):
            watch(query)
            if stopped.is_set():
                break
        watch(query)
    except Py4JNetworkError:  # this process cannot start another
        return query, Failure("Spark's JVM has ended", is_passing=False)
    except (PySparkException, Py4JError) as error:
        return query, explain(error, settings.checkpoint_location)
    except TopicError as error:  # raised when the driver itself asks for offsets
        return query, Failure(without_condition(str(error)), isinstance(error, Unreachable))
    finally:
        with suppress(PySparkException, Py4JError):  # Spark may be gone already
            if query is not None and query.isActive:
                query.stop()
    return query, None


def advanced(query: StreamingQuery | None) -> bool:
    with suppress(PySparkException, Py4JError):
        return query is not None and any(each["numInputRows"] for each in query.recentProgress)
    return False
