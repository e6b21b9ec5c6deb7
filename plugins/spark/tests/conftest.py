"""One Spark session for all tests of the pipeline: starting one costs as much as hundreds of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from spark_topics import TOPIC

import odradek.testing
from odradek.testing import RunningHost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def host() -> Iterator[RunningHost]:
    """A host with an empty telemetry topic of one partition."""
    with odradek.testing.host() as running:
        running.topics.create(TOPIC)
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two cores."""
    from odradek_spark.ingest.session import archive_path, local_session

    session = local_session(
        "tests", "local[2]", {"spark.sql.shuffle.partitions": "2"}, archive=archive_path()
    )
    yield session
    session.stop()
