"""One Spark session for all tests of the pipeline: it costs as much as hundreds of tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two cores."""
    from odradek_spark.ingest.session import archive_path, local_session

    session = local_session(
        "tests", "local[2]", {"spark.sql.shuffle.partitions": "2"}, archive=archive_path()
    )
    yield session
    session.stop()
