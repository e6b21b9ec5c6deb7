"""Options of the source: their parsed values, and the errors for invalid ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from odradek_spark.sink import write_options
from odradek_spark.source.options import EARLIEST, KNOWN, LATEST, OptionError, Position, read_options

NAME = re.compile(r"`([\w.*]+)`")
NEEDED = {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}


def test_options_are_case_insensitive_and_typed() -> None:
    given = {
        "MAXOFFSETSPERTRIGGER": "10",
        "maxBytesPerTrigger": "20",
        "failondataloss": "False",
        "Kafka.Security.Protocol": "SSL",
        "kafka.group.id": "mine",
        "maxTriggerDelay": "2m",
        "minPartitions": "4",
    }

    found = read_options(NEEDED | given)

    assert found.client == {"bootstrap.servers": "b:9092", "security.protocol": "SSL"}
    assert (found.topic, found.group, found.group_id) == ("t", "mine", "mine")
    assert (found.max_offsets, found.max_bytes, found.min_partitions) == (10, 20, 4)
    assert (found.fail_on_data_loss, found.include_headers, found.max_delay_ms) == (False, True, 120_000)


def test_the_defaults_are_those_of_sparks_kafka_connector() -> None:
    found = read_options(NEEDED)

    assert (found.starting, found.ending, found.fail_on_data_loss) == (None, Position(LATEST), True)
    assert (found.max_offsets, found.min_offsets, found.max_delay_ms) == (None, 0, 900_000)
    assert found.group_id == "odradek.spark"


@pytest.mark.parametrize(
    ("given", "position"),
    [
        ({"startingOffsets": "latest"}, Position(LATEST)),
        ({"startingOffsets": '{"t": {"0": 5, "1": -1, "2": -2}}'}, Position(EARLIEST, {0: 5, 1: -1, 2: -2})),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 5}}'}, Position(timestamps_ms={0: 5})),
        ({"startingTimestamp": "7", "startingOffsets": "latest"}, Position(timestamp_ms=7)),
    ],
)
def test_positions_are_those_of_the_connector(given: dict[str, str], position: Position) -> None:
    assert read_options(NEEDED | given).starting == position


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"kafka.bootstrap.servers": ""}, "option kafka.bootstrap.servers: expected HOST:PORT"),
        ({"subscribe": "a,b"}, "option subscribe: expected one topic, found 'a,b'"),
        ({"subscribePattern": "a.*"}, "option subscribepattern: one source reads one topic"),
        ({"startingOfsets": "latest"}, "there is no such option; the nearest is startingOffsets"),
        ({"bootstrap.servers": "b"}, "it is kafka.bootstrap.servers now"),
        ({"topic": "b"}, "it is subscribe now"),
        ({"rows": "points"}, r"use points\(df\)"),
        ({"path": "p"}, "only the sink has a path"),
        ({"kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"kafka.ssl.keystore.type": "JKS"}, r'only Java has it: use format\("kafka"\)'),
        ({"kafka.sasl.login.callback.handler.class": "x"}, "only Java has it"),
        ({"maxOffsetsPerTrigger": "1M"}, "option maxOffsetsPerTrigger: expected a whole number from 1"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss: expected true or false"),
        ({"startingOffsets": "5"}, r'option startingOffsets: expected JSON like \{"t": \{"0": 23\}\}'),
        ({"endingOffsets": "earliest"}, "option endingOffsets: expected JSON"),
        ({"startingOffsets": '{"other": {"0": 5}}'}, "option startingOffsets: expected JSON"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay: expected a duration"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "expected error or latest"),
    ],
)
def test_invalid_options_are_refused_with_the_condition_and_what_to_do(
    given: dict[str, str], problem: str
) -> None:
    with pytest.raises(OptionError, match=rf"^\[ODRADEK_OPTION\] .*{problem}"):
        read_options(NEEDED | given)


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("source", {*KNOWN.values(), "kafka.*", "kafka.group.id"}),
        ("sink", {*write_options.KNOWN.values(), "checkpointLocation"}),
    ],
)
def test_readme_has_each_option(heading: str, known: set[str]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    section = text.partition(f"## Options of the {heading}\n")[2].partition("\n## ")[0]

    written = {name for line in section.splitlines() for name in NAME.findall(line.partition(" | ")[0])}

    assert written == known


def test_a_planner_of_the_source_imports_little() -> None:
    """Spark starts one for each query, and gives up if it does not answer in time."""
    script = (
        "import pyspark.sql.worker.plan_data_source_read, sys; from pyspark_odradek import DefaultSource; "
        "source = DefaultSource({'kafka.bootstrap.servers': 'h:1', 'subscribe': 't'}); "
        "source.streamReader(source.schema()).topic; print(*sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}

    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )

    heavy = {
        "pandas",
        "deltalake",
        "duckdb",
        "opentelemetry",
        "google.protobuf",
        "odradek.otlp",
        "odradek.topic",
    }
    assert heavy.isdisjoint(told.stdout.split())
