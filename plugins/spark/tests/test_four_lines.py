"""``format("odradek")`` and Spark's Kafka source, in a session that is not of this package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ingested import every, is_exactly, rows
from maven import jar
from spark_topics import fill, records
from test_kafka_source import JARS

import odradek.testing
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import INGESTED

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
PROGRAM = Path(__file__).with_name("four_lines.py")
TOPIC = "__client_telemetry"
COLUMNS = [
    "key:binary",
    "value:binary",
    "topic:string",
    "partition:int",
    "offset:bigint",
    "timestamp:timestamp",
    "timestampType:int",
    "headers:array<struct<key:string,value:binary>>",
]


@pytest.fixture(scope="module", params=["odradek", pytest.param("kafka", marks=pytest.mark.nightly)])
def walked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of the tables and what the program said."""
    source = request.param
    jars = ",".join(str(jar(each)) for each in JARS) if source == "kafka" else ""
    folder = tmp_path_factory.mktemp(source)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        "PYSPARK_PYTHON": sys.executable,
    }
    with odradek.testing.host(telemetry_durability="log", telemetry_topic_partitions=2) as host:
        fill(host.bootstrap, records(40, partitions=2), TOPIC)
        done = subprocess.run(
            [sys.executable, str(PROGRAM), source, host.bootstrap, TOPIC, str(folder), jars],
            capture_output=True,
            text=True,
            timeout=500,
            env=environment,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr[-5_000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_the_source_has_the_columns_of_sparks_kafka_connector(walked: tuple[Path, Any]) -> None:
    _, said = walked

    assert said["columns"] == COLUMNS
    assert said["rows"] == [40, 120]


def test_each_push_is_in_the_tables_once(walked: tuple[Path, Any]) -> None:
    folder, said = walked

    assert said["first"] == 40, said["first"]  # else the error of the query, not shortened
    assert is_exactly(folder / "tables", every(40, 2))


def test_a_new_checkpoint_that_does_not_continue_the_tables_is_refused(walked: tuple[Path, Any]) -> None:
    _, said = walked

    assert "[ODRADEK_TABLE_CONFLICT]" in said["new checkpoint"], said["new checkpoint"]
    assert re.search(rf"the table has {TOPIC}-[01] up to offset 20", said["new checkpoint"])


def test_rows_of_a_table_are_written_to_it(walked: tuple[Path, Any]) -> None:
    folder, said = walked

    assert said["points"] == 40, said["points"]
    assert {each[0].rpartition(".")[2] for each in rows(folder / "points", "points", "name")} == {"1"}
    assert len(rows(folder / "points", "points", "name")) == 40
    assert not (folder / "points" / "pushes").exists()


def test_the_history_names_the_query_and_the_batch(walked: tuple[Path, Any]) -> None:
    folder, _ = walked

    for table in INGESTED:
        history = Dataset(str(folder / "tables")).existing(table).history()
        batches = [each for each in history if "batch" in each]
        assert [each["batch"] for each in batches] == ["0"]
        assert len(batches[0]["query"]) == 36
        assert (batches[0]["pushes"], batches[0]["points"], batches[0]["lost"]) == ("40", "120", "0")


def test_an_option_is_refused_at_load_with_the_one_to_use(walked: tuple[Path, Any]) -> None:
    _, said = walked
    if "unknown" not in said:
        pytest.skip("the options of Spark's own source")

    assert "[ODRADEK_OPTION] option startingoffset: there is no such option" in said["unknown"]
    assert "the nearest is startingOffsets" in said["unknown"]
    assert "use kafka.sasl.username and kafka.sasl.password" in said["of java"]
