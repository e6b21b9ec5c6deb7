"""Ingest by Spark's own source and by Spark's own writer: the messages for the user."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ingested import settings
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek.testing import RunningHost
from odradek_spark.cli.ingest import ingested
from odradek_spark.ingest.progress import Shown
from odradek_spark.ingest.status import Totals
from odradek_spark.ingest.watching import IngestWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def host() -> Iterator[RunningHost]:
    with odradek.testing.host() as running:
        running.topics.create(TOPIC, partitions=2)
        yield running


def test_without_its_jar_sparks_own_source_asks_for_it(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    from odradek_spark.ingest.run import IngestFailed, run_ingest

    given = settings(host.bootstrap, tmp_path / "d", source="kafka")
    said: list[str] = []

    with pytest.raises(
        IngestFailed, match=r"--conf spark\.jars\.packages=org\.apache\.spark:spark-sql-kafka"
    ):
        run_ingest(spark, given, once=True, say=said.append)

    assert said == []  # it does not end by itself


def test_sparks_own_writer_reports_its_progress(
    spark: SparkSession, host: RunningHost, tmp_path: Path
) -> None:
    from odradek_spark.ingest.run import run_ingest

    fill(host.bootstrap, records(20, partitions=2))
    given = settings(host.bootstrap, tmp_path / "d", writer="spark", max_bytes_per_trigger=1_500)
    out = io.StringIO()

    with Shown(out, 0.0) as shown, IngestWatch(given, shown.show) as watch:
        run_ingest(spark, given, once=True, watch=watch)
    with Shown(io.StringIO()) as hidden, IngestWatch(given, hidden.show) as again:
        run_ingest(spark, given, once=True, watch=again)

    assert watch.total.batches > 1
    assert (watch.total.pushes, watch.total.points) == (20, 60)
    assert out.getvalue().splitlines()[-1].startswith("20 of 20 pushes, 60 points, ")
    assert again.total == Totals(0, 0, 0, 0)
    assert ingested(again.total, given) == "ingested 0 pushes, 0 points in 0 batches"
