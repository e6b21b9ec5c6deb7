"""Ingest by Spark's own source: the messages for the user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ingested import settings
from spark_topics import TOPIC

import odradek.testing
from odradek.testing import RunningHost

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
