"""Every table in other tools: every reader that the documents name returns the same rows for a filter."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyspark
import pytest
from maven import jar
from spark_payloads import metrics_data
from table_readers import READERS, Filter, filters, lines, one_of_each_kind, selected
from telemetry_rows import LATENCY, SENT, Told, counted, gauge, ingest_batches

from odradek_spark.jobs.erase import run_erase
from odradek_spark.jobs.rules import Op, Rule
from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import BY_NAME, ROLLUPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
RULE = Rule(id="slow", metric=LATENCY, op=Op.ABOVE, threshold=100.0)
PROGRAM = Path(__file__).with_name("delta_spark_counts.py")
DELTA_VERSIONS = {"4.1": "4.4.0", "4.2": "4.4.0"}
"""By version of Spark: the newest jar of Delta for it. A jar of another version does not load the tables."""


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Metrics of every kind, an invalid payload, and the results of the jobs."""
    from odradek_spark.jobs.episodes import run_detect
    from odradek_spark.jobs.inventory import run_inventory
    from odradek_spark.jobs.rollup import run_rollup

    made = Dataset(str(tmp_path_factory.mktemp("every") / "dataset"))
    told = [gauge(counted(Told(float(at), client=2), at, at - 30.0), 250.0) for at in range(30, 600, 30)]
    kinds = [Told(3600.0, raw=metrics_data(random.Random(seed)).SerializeToString()) for seed in range(8)]
    big = counted(Told(7000.0), 2**53 + 1, 6970.0, "cumulative")
    gone = gauge(Told(10.0, client=3, client_id="gone"), 1.0)
    end = ingest_batches(made, [[gone]])
    run_erase(made.root, "client_id", "gone", datetime(2026, 9, 22, 12, tzinfo=UTC))
    ingest_batches(made, [told, kinds, [Told(7000.0, raw=b"\xff\xff\x00"), big]], end)
    for table in ROLLUPS:
        run_rollup(spark, made.root, table)
    run_inventory(spark, made.root)
    run_detect(spark, made.root, (RULE,))
    return made


def test_a_table_is_the_same_to_spark(spark: SparkSession, dataset: Dataset) -> None:
    for name, table in BY_NAME.items():
        expected = lines(table, dataset.existing(table).to_pyarrow_table())

        found = lines(table, load_dataset(spark, dataset.root, name).toArrow())

        assert expected, name
        assert found == expected, name


@pytest.mark.parametrize("reader", READERS)
def test_a_filter_selects_the_same_rows_for_all_readers(dataset: Dataset, reader: str) -> None:
    different = []
    for table in BY_NAME.values():
        opened = dataset.existing(table)
        whole = opened.to_pyarrow_table()
        asked = list(filters(table, whole))
        assert asked, table.name
        if reader != "deltalake":  # it gets a filter on every column
            asked = one_of_each_kind(table, asked)
        different += [
            (table.name, each)
            for each in asked
            if lines(table, READERS[reader](opened, table, each))
            != lines(table, selected(table, whole, each))
        ]

    assert different == []


def test_a_filter_selects_the_same_rows_in_spark(spark: SparkSession, dataset: Dataset) -> None:
    for name in BY_NAME:
        asked = asked_of_spark(dataset, name)
        load_dataset(spark, dataset.root, name).createOrReplaceTempView("asked")

        # one text is analyzed once; a union of frames again with each of them
        found = spark.sql(
            " UNION ALL ".join(
                f"SELECT {at} AS at FROM asked WHERE {backquoted(each)}" for at, each in asked.items()
            )
        ).collect()

        assert Counter(row["at"] for row in found) == expected_counts(dataset, name, asked), name


def test_a_filter_selects_the_same_rows_with_the_jar_of_delta(dataset: Dataset) -> None:
    jars = delta_jars()
    asked = {name: asked_of_spark(dataset, name) for name in BY_NAME}
    told = {name: {at: backquoted(each) for at, each in found.items()} for name, found in asked.items()}

    done = subprocess.run(
        [sys.executable, str(PROGRAM), ",".join(map(str, jars)), dataset.root],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        timeout=180,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    counts = {
        name: {int(at): count for at, count in found.items()}
        for name, found in json.loads(done.stdout.splitlines()[-1]).items()
    }
    assert counts == {name: expected_counts(dataset, name, found) for name, found in asked.items()}


def delta_jars() -> list[Path]:
    """The jar of Delta for the installed Spark, and the one that it needs."""
    spark = ".".join(pyspark.__version__.split(".")[:2])
    version = DELTA_VERSIONS.get(spark)
    if version is None:
        pytest.skip(f"Maven Central has no jar of Delta for Spark {spark}")
    return [jar(f"io.delta:delta-spark_{spark}_2.13:{version}"), jar(f"io.delta:delta-storage:{version}")]


def asked_of_spark(dataset: Dataset, name: str) -> dict[int, Filter]:
    """Numbered filters, one for each kind of column."""
    table = BY_NAME[name]
    whole = dataset.existing(table).to_pyarrow_table()
    return dict(enumerate(one_of_each_kind(table, list(filters(table, whole)))))


def backquoted(found: Filter) -> str:
    """The condition in Spark's SQL."""
    return found.sql.replace(f'"{found.column}"', f"`{found.column}`", 1)


def expected_counts(dataset: Dataset, name: str, asked: dict[int, Filter]) -> dict[int, int]:
    whole = dataset.existing(BY_NAME[name]).to_pyarrow_table()
    return {at: selected(BY_NAME[name], whole, each).num_rows for at, each in asked.items()}


OF_DELTA = {
    *("version", "inCommitTimestamp", "userId", "userName", "job", "notebook", "clusterId", "readVersion"),
    *("isolationLevel", "isBlindAppend", "operationMetrics", "userMetadata", "tags", "txnId"),
}
"""Fields of `CommitInfo` in Delta's jar, which cannot read other types there."""


def test_the_history_has_no_fields_of_delta_with_other_types(dataset: Dataset) -> None:
    for table in BY_NAME.values():
        written = Path(dataset.uri(table), "_delta_log").glob("*.json")
        actions = [json.loads(line) for each in written for line in each.read_text().splitlines()]

        keys = {key for each in actions for key in each.get("commitInfo", {})}

        assert "timestamp" in keys, table.name
        assert keys & OF_DELTA <= {"operationMetrics", "readVersion"}, table.name


def test_an_integer_beyond_doubles_is_exact(dataset: Dataset) -> None:
    points = pl.read_delta(dataset.uri(BY_NAME["points"]))

    found = points.filter((pl.col("name") == SENT) & (pl.col("value_int") > 2**53))

    assert found["value_int"].to_list() == [2**53 + 1]
    assert found["value"].to_list() == [None]
