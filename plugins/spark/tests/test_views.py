"""The views give the same rows in Spark and in DuckDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from telemetry_rows import Told, counted, gauge, ingest

from odradek_tables.dataset import Dataset
from odradek_tables.query.reader import Reader
from odradek_tables.query.views import LAG, VIEWS
from odradek_tables.schemas import ROLLUPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Repeated pushes, values that are not numbers or beyond doubles, names with SQL metacharacters; two
    rollups.
    """
    from odradek_spark.jobs.rollup import run_rollup
    from odradek_spark.views import register_views

    made = Dataset(str(tmp_path_factory.mktemp("views") / "dataset"))
    first = gauge(gauge(Told(10), 1.5, topic="a'b"), float("nan"), topic='"')
    batches = [
        [first, replace(first, at_s=11), replace(first, at_s=12), replace(first, at_s=200)],
        [
            counted(Told(310, client_id="$x"), 2**53 + 1, 10),
            counted(Told(320, client_id="o'x"), float("inf"), 20),
        ],
        [counted(Told(20, client=3, version="5"), 0.5, 0), gauge(Told(4_000), -0.0), Told(4_001)],
        [lagging(30.0, "0"), lagging(30.0, "1"), lagging(60.0, "0")],
    ]
    end = 0
    for batch in batches:
        end = ingest(made, batch, end)
        for table in ROLLUPS:
            run_rollup(spark, made.root, table)
    register_views(spark, made.root)
    return made.root


def lagging(at_s: float, partition: str) -> Told:
    """A push of the source of lag about a partition."""
    labels = {"group": "g", "topic": "t", "partition": partition}
    return gauge(gauge(Told(at_s, client=4), 7.0, LAG["lag"], **labels), 1.5, LAG["lag_s"], **labels)


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.astimezone()).astimezone(UTC).isoformat()
    return repr(value)


def sorted_rows(rows: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    return sorted([(name, plain(value)) for name, value in row.items()] for row in rows)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_the_same_in_both_engines(spark: SparkSession, root: str, view: str) -> None:
    reader = Reader(root)

    in_spark = spark.table(view).toArrow().to_pylist()
    in_duckdb = reader.ask(f"SELECT * FROM {view}").to_pylist()
    reader.close()

    assert len(in_spark) > 1
    assert sorted_rows(in_spark) == sorted_rows(in_duckdb)
