"""The progress of ingest, by Spark's own: a line for each batch, and metrics for Prometheus."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from deltalake.exceptions import DeltaError
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from odradek.endpoints import Address
from odradek_spark.source.offsets import backlog, from_json
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Counts
from odradek_tables.schemas import PUSHES

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

RECENT = 50
"""Commits to search for the last batch; some are by maintenance."""
READY_S: Final = 10.0
"""Ingest without a sign of life for so long is not ready: between attempts, or if Spark hangs."""


class Progress:
    """The ``watch`` of `odradek_spark.ingest.run.run_ingest`; ``say`` gets a line after each batch."""

    def __init__(
        self, root: str, say: Callable[[str], object], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.say, self.now_s = say, now_s
        self.dataset = Dataset(root)
        self.version = version(self.dataset)
        self.total = Counts()
        self.waiting: int | None = None
        """Records of the topic after the last batch; None if Spark does not tell."""
        self.seen: object = None
        self.beat_s = self.batch_s = float("-inf")
        """The last sign of life, and the last batch."""

    def __call__(self, query: StreamingQuery) -> None:
        """Look for a new batch. A store that does not answer is asked again later."""
        self.beat_s, progress = self.now_s(), query.lastProgress
        if progress is None or self.seen == (progress.runId, progress.batchId):
            return
        with suppress(DeltaError, OSError):
            came, self.version = batches_since(self.dataset, self.version)
            self.seen = progress.runId, progress.batchId
            if came.batches:
                self.total, self.waiting, self.batch_s = (
                    self.total + came,
                    waiting(json.loads(progress.json)),
                    self.beat_s,
                )
                left = "" if self.waiting is None else f", {self.waiting:,} waiting"
                letters = f", {came.dead_letters:,} dead letters" if came.dead_letters else ""
                self.say(f"{came.pushes:,} pushes, {came.points:,} points{letters}{left}")

    def collect(self) -> Iterator[Metric]:
        """The metrics; for a registry of prometheus_client."""
        for name, value, what in (
            ("batches", self.total.batches, "Batches that were committed"),
            ("pushes", self.total.pushes, "Pushes that were loaded into the tables"),
            ("points", self.total.points, "Data points that were loaded into the tables"),
            ("dead_letters", self.total.dead_letters, "Records that could not be decoded"),
        ):
            yield CounterMetricFamily(f"odradek_pipeline_{name}", f"{what} since the start.", value)
        if self.waiting is not None:
            text = "Records of the topic that were in no table after the last batch."
            yield GaugeMetricFamily("odradek_pipeline_waiting", text, self.waiting)
        if self.total.batches:
            name, text = "odradek_pipeline_last_batch_age_seconds", "Time since the last batch."
            yield GaugeMetricFamily(name, text, self.now_s() - self.batch_s)
        ready = float(self.now_s() - self.beat_s < READY_S)
        yield GaugeMetricFamily("odradek_pipeline_ready", "1 while ingest runs, 0 while it waits.", ready)


def waiting(progress: Mapping[str, Any]) -> int | None:
    """The records between the end of a batch and that of the topic, by Spark's progress; None if unknown."""
    for source in progress["sources"]:
        end, latest = (
            json.loads(each) if isinstance(each, str) else each  # text with Spark Connect
            for each in (source["endOffset"], source["latestOffset"])
        )
        if end and latest:
            return sum(backlog(from_json(end[topic]), from_json(latest[topic])) for topic in latest)
    return None


@contextmanager
def served(progress: Progress, address: Address) -> Iterator[None]:
    """Serve the metrics, by each path, in the body of the statement.

    Raises:
        OSError: The address is in use, or the host does not exist.
    """
    registry = CollectorRegistry()
    registry.register(progress)
    try:
        server, thread = start_http_server(address.port, address.host, registry)
    except OSError as error:
        raise OSError(f"metrics listener {address}: {error.strerror or error}") from error
    progress.say(f"metrics at http://{address._replace(port=server.server_port)}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def version(dataset: Dataset) -> int:
    """The version of ``pushes``, the table that is committed last; -1 if it does not exist."""
    found = dataset.open(PUSHES)
    return -1 if found is None else found.version()


def last_batch(root: str) -> tuple[datetime, Counts] | None:
    """The time and the contents of the batch that was committed last; None if there is none."""
    found = Dataset(root).open(PUSHES)
    return None if found is None else next(batches(found.history(RECENT)), None)


def batches_since(dataset: Dataset, before: int) -> tuple[Counts, int]:
    """The totals of the batches since a version, and the version that they reach."""
    found = dataset.open(PUSHES)
    if found is None or found.version() <= before:
        return Counts(), before
    came = (each for _, each in batches(found.history(found.version() - before)))
    return sum(came, Counts()), found.version()


def batches(history: list[dict[str, Any]]) -> Iterator[tuple[datetime, Counts]]:
    """The commits that were batches of ingest, the latest first."""
    for each in history:
        if "batch" in each:
            yield (
                datetime.fromtimestamp(each["timestamp"] / 1000, UTC),
                Counts(int(each["pushes"]), int(each["points"]), int(each.get("deadLetters", 0)), batches=1),
            )
